"""SIGINT, SIGTERM, SIGHUP, SIGKILL at random moments of every command that writes: old or new, never half or none."""

import signal

import pytest

from attacks import COMMANDS, Attack, digest

STOPPING = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SIGNALS = (*STOPPING, signal.SIGKILL)


def assault(attack, campaign, n):
    current = "a"
    for at in campaign.faults(n):
        number = SIGNALS[at % len(SIGNALS)]
        wanted = "ab"[int(campaign.rng.integers(2))]
        after = float(campaign.rng.uniform(0, 1.1 * attack.duration))
        done = attack.run(wanted, number=number, after=after)
        found = digest(attack.target)
        assert found in {attack.contents[current], attack.contents[wanted]}, (
            "neither the old nor the new content"
        )
        is_new = found not in {None, attack.contents[current]}
        if number == signal.SIGKILL:
            assert done.code in {0, -signal.SIGKILL}
            outcome = "killed" if done.code else "done before it was killed"
            if attack.next_run_removes(wanted):
                found = attack.contents[wanted]
                outcome += ", what it left removed by the next run"
        elif done.code == 0:
            assert found == attack.contents[wanted]
            outcome = "done before it was stopped"
        else:
            assert done.code in {STOPPING[number], -number}, (done.code, done.said)
            outcome = "stopped"
            if done.code < 0:  # before the command began, or when it had ended
                assert done.said == "" or found == attack.contents[wanted], done.said
            elif "no file was changed" in done.said:
                assert not is_new, done.said
            elif "had been written" in done.said:
                assert found == attack.contents[wanted], done.said
                outcome = "stopped after it had written, and said so"
            else:
                assert done.said == "", done.said  # stopped before anything of ours ran
            assert attack.left_over() == [], (number, done.said)
        campaign.count(outcome)
        current = next(name for name in (wanted, current) if attack.contents[name] == found)


@pytest.mark.parametrize("command", ["convert to a store", "fit"])
def test_signals_at_random_moments(command, server, rows, campaign, tmp_path):
    assault(Attack(server, rows, tmp_path, command), campaign, 12)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_many_signals_at_random_moments(command, server, rows, campaign, tmp_path):
    assault(Attack(server, rows, tmp_path, command), campaign, 100)
