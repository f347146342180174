from .gradient_step import GradientStep as GradientStep
from .mfu import peak_flops as peak_flops
from .parallel import make_trainable as make_trainable
from .run import train as train
from .trainer import PRECISIONS as PRECISIONS
from .trainer import Trainer as Trainer
from .watcher import TensorBoard as TensorBoard
from .watcher import Watcher as Watcher
