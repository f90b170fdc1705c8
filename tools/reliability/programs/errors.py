"""What calls that are wrong raise, for the programs of both faces."""


def errors_of(calls):
    """The type and first line of each one's exception, "" where there is none; no MemoryError."""
    texts = []
    for call in calls:
        try:
            call()
            texts.append("")
        except MemoryError:
            raise
        except Exception as e:
            texts.append([type(e).__name__, str(e).split("\n")[0]])
    return texts
