"""What can go wrong with a lab: one line that says what, one that says what to do."""

# Exit codes of scripts/lab/run when it is not the command's own.
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_UNAVAILABLE = 77
EXIT_TIMEOUT = 124


class LabError(Exception):
    """The lab could not do what it was asked for."""

    exit_code = EXIT_FAILED

    def __init__(self, message, fix):
        super().__init__(message)
        self.fix = fix


class Unavailable(LabError):
    """This host cannot run the lab at all: tests skip with this reason."""

    exit_code = EXIT_UNAVAILABLE


class Overdue(LabError):
    """The command was still running when its time was over."""

    exit_code = EXIT_TIMEOUT
