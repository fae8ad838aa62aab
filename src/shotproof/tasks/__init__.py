"""The task set and its file, the check of its constraints, and one file for each sampler."""

from shotproof.tasks.check import check_tasks
from shotproof.tasks.sampler import Sampler, sample, samplers
from shotproof.tasks.taskset import TaskSet

__all__ = ["Sampler", "TaskSet", "check_tasks", "sample", "samplers"]
