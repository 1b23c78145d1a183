"""What every test relies on."""

import signal

# A job in the background is started with Ctrl-C ignored, and so would be the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
