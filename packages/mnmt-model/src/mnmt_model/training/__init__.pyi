from .expert_balance import ExpertBalance as ExpertBalance
from .gradient_step import GradientStep as GradientStep
from .initial_model import PRECISIONS as PRECISIONS
from .mfu import peak_flops as peak_flops
from .parallel import make_trainable as make_trainable
from .run import train as train
from .trainer import Trainer as Trainer
from .watcher import Watcher as Watcher
