"""The views of PyTorch's TensorBoard plugin as pandas frames, with times in microseconds.

HTA does not have these views. `TraceAnalysis` inherits the methods of `PluginViews`, so scripts in HTA's style can call them;
`RunDiff` compares two runs. In new code, use the functions of `holotrace` instead, which have the same option `compat`.
"""

from hta.tensorboard_plugin.run_diff import RunDiff as RunDiff
from hta.tensorboard_plugin.views import PluginViews as PluginViews
