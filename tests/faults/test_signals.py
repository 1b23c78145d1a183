"""Ctrl-C and SIGKILL at random moments of commands that write: the old or the new file, never half of one."""

import signal

import pytest

from attacks import COMMANDS, Attack

SIGNALS = (signal.SIGINT, signal.SIGKILL)


def assault(attack, campaign, n):
    current = "a"
    for at in campaign.faults(n):
        number = SIGNALS[at % len(SIGNALS)]
        wanted = "ab"[int(campaign.rng.integers(2))]
        after = float(campaign.rng.uniform(0, 1.1 * attack.duration))
        done = attack.run(wanted, number=number, after=after)
        if number != signal.SIGKILL:
            assert attack.target.exists(), done.said
        left_over = attack.left_over()
        found = attack.settle()
        assert found in {attack.contents[current], attack.contents[wanted]}, (
            "neither the old nor the new content"
        )
        if number == signal.SIGKILL:
            assert done.code in {0, -signal.SIGKILL}
            outcome = "killed" if done.code else "done before it was killed"
        elif done.code == 0:
            assert found == attack.contents[wanted]
            outcome = "done before it was stopped"
        else:
            assert done.code in {130, -number}, (done.code, done.said)
            assert done.said in {"", "rankwise: error: interrupted.\n"}
            assert left_over == []
            outcome = "stopped"
        campaign.count(outcome)
        current = next(name for name in (wanted, current) if attack.contents[name] == found)


@pytest.mark.parametrize("command", ["convert to a store", "fit"])
def test_signals_at_random_moments(command, server, rows, campaign, tmp_path):
    assault(Attack(server, rows, tmp_path, command), campaign, 4)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_many_signals_at_random_moments(command, server, rows, campaign, tmp_path):
    assault(Attack(server, rows, tmp_path, command), campaign, 50)
