"""What Keras mixes into every layer: nothing is needed."""


class SimtLayer:
    pass
