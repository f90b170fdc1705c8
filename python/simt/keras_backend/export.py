"""Model.export: not there."""


class SimtExportArchive:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "model.export with the simt backend: not in simt yet; nearest is model.save"
        )
