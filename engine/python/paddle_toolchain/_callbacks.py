"""Callbacks of training: objects that have some of the methods that a trainer calls."""


def tell(callbacks, method, *values):
    """Calls a method of each callback that has it; "stop" if one of them returns that, else None."""
    answers = [getattr(callback, method)(*values) for callback in callbacks if hasattr(callback, method)]
    return "stop" if "stop" in answers else None
