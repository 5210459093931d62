"""On-policy distillation: the student writes, the teacher grades every token."""

from __future__ import annotations

from strop.models.names import model_folder
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.distillation import Distillation


def distillation(setting: Setting = Setting(), teacher: str = "pocket") -> Run:
    """`teacher` is a model folder with the same vocabulary; rewards are only watched."""
    return setting.run("distillation", Constant(), (Distillation(str(model_folder(teacher))),))
