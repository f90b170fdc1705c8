"""Model.export: not there."""


class SimtExportArchive:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "`export_saved_model` only currently supports the tensorflow, jax and torch backends. "
            "With simt: not in simt yet; nearest is model.save"
        )
