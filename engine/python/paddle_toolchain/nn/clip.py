"""How optimizers bound gradients."""


class ClipGradByGlobalNorm:
    """All gradients together to this norm."""

    kind = "global_norm"

    def __init__(self, clip_norm):
        self.bound = float(clip_norm)


class ClipGradByNorm:
    """Each gradient to this norm."""

    kind = "norm"

    def __init__(self, clip_norm):
        self.bound = float(clip_norm)


class ClipGradByValue:
    """Each element between -max and max."""

    kind = "value"

    def __init__(self, max):
        self.bound = float(max)
