"""The command line whose DoorKey runs checkpoint often and are watched briefly: `python run_doorkey.py run doorkey …`.

A worker process imports this file again, under another name: what is changed below is changed there.
DOORKEY_LOG: a file that gets a line for every share done. DOORKEY_STOP: a worker waits to be killed after so many
checkpoints.
"""

import os
import sys
import time


def hurry() -> None:
    """Make checkpoints after every few updates, and evaluations short."""
    from payback_lab.experiments import resumable
    from payback_lab.experiments.doorkey import training as doorkey_training

    train, save = doorkey_training.train, resumable.save_checkpoint
    left = int(os.environ.get("DOORKEY_STOP", "-1"))

    def train_and_log(run, learner_version, progress, out):
        def told(share: float) -> None:
            with open(os.environ["DOORKEY_LOG"], "a") as log:
                log.write(f"{share}\n")
            progress(share)

        return train(run, learner_version, told, out)

    def save_and_stop(*arguments) -> None:
        nonlocal left
        save(*arguments)
        left -= 1
        if left == 0:
            time.sleep(3600)

    resumable.CHECKPOINT, resumable.CHUNK = 0.0, 4
    doorkey_training.EVALUATION = doorkey_training.FILMED = 20  # the same number, to be compiled once
    doorkey_training.train, resumable.save_checkpoint = train_and_log, save_and_stop


if __name__ == "__main__":
    from payback_lab import cli

    sys.exit(cli.main())
else:
    hurry()
