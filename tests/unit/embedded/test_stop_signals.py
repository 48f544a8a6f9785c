"""A signal is heard whatever the main thread is doing when it comes."""

import subprocess
import sys

MANY_SIGNALS = """
import os, signal, threading
from spark_jobs.embedded.process import stop_signals

def send():
    for _ in range(20_000):
        os.kill(os.getpid(), signal.SIGTERM)

with stop_signals() as stop:
    sender = threading.Thread(target=send)
    sender.start()
    while sender.is_alive():  # the event's lock is held most of the time
        stop.wait(0)
        stop.clear()
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(30)
"""


def test_signals_never_find_the_event_locked_for_ever() -> None:
    done = subprocess.run([sys.executable, "-c", MANY_SIGNALS], timeout=60, check=False)
    assert done.returncode == 0
