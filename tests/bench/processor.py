"""What the system says of its processor and memory."""


def fact(path, key):
    """The first value of a key in a file of /proc, or "unknown"."""
    try:
        with open(path) as f:
            return next((l.split(":", 1)[1].strip() for l in f if l.startswith(key)), "unknown")
    except OSError:
        return "unknown"


def flags():
    """The processor's instruction sets by Linux's names."""
    return fact("/proc/cpuinfo", "flags").split()
