"""Run the advantage functions of published training stacks on the vectors of chapter 8.

    python tools/measure_stacks.py                    the newest versions
    python tools/measure_stacks.py trl==1.16.0 verl   these, pinned or not
    python tools/measure_stacks.py --store            keep what was found in measured.json

Each stack is downloaded without its dependencies. Nothing of it is imported: the named function is
cut out of its source and only that is executed, in an environment with CPU torch, in a process
with a time limit. Prints what differs from the vectors of the table; ends with 1 if anything does.
"""

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
import zipfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "grpo" / "data"
VECTORS = DATA / "advantage_vectors.json"  # what the table of chapter 8 shows
MEASURED = DATA / "measured.json"  # versions, dates and vectors of the last run with --store
TORCH = "torch==2.13.0"  # as for the vectors
SECONDS = 120

# Put before the code that was cut out. `group` holds the rewards of one group in float32.
SETTING = """
from __future__ import annotations
import itertools
from collections import defaultdict
from types import SimpleNamespace
import numpy as np
n = len(group)
"""
TRAINER = """
device, num_generations, mode = group.device, n, "train"
rewards_per_func = group[:, None]
self = SimpleNamespace(
    reward_weights=torch.ones(1), multi_objective_aggregation="sum_then_normalize",
    reward_clip_range=None, beta=0.0, normalize_advantages=False, scale_rewards={scale!r},
)
"""
EXPERIENCES = """
experiences = [SimpleNamespace(index=list(range(n)), rewards=group.clone(), info={{}})]
advantage = SimpleNamespace(estimator={estimator!r})
args = SimpleNamespace(
    rollout=SimpleNamespace(n_samples_per_prompt=n), algo=SimpleNamespace(advantage=advantage),
)
"""
VERL = """
result = compute_grpo_outcome_advantage(
    group[:, None].clone(), torch.ones(n, 1), np.zeros(n, int), norm_adv_by_std_in_grpo={by_std}
)[0][:, 0]
"""
SWIFT = """
result = compute_advantages(group[:, None], torch.ones(1), n, {estimator!r}, {scale!r})[0]
"""
GRPO, RLOO = "trl/trainer/grpo_trainer.py", "trl/trainer/rloo_trainer.py"
NANSTD = ("trl/trainer/utils.py", "nanstd")
MAKER = "openrlhf/trainer/ppo_utils/experience_maker.py"
RLHF_BOOK = "https://github.com/natolambert/rlhf-book/archive/refs/heads/main.zip"

# What to cut out is (file, function), or (file, method, first, stop): the statements of the method
# from the one that first binds the name `first` up to the one that binds `stop`.
# {name in the table: (requirement or address, what to cut out, set before, run after)}
CONVENTIONS = {
    f"trl.grpo({scale})": (
        "trl",
        [NANSTD, (GRPO, "_generate_and_score_completions", "unscorable_mask", "process_slice")],
        TRAINER.format(scale=scale),
        "result = advantages",
    )
    for scale in ("group", "none")
}
CONVENTIONS["trl.rloo"] = (
    "trl",
    [NANSTD, (RLOO, "_generate_and_score_completions", "unscorable_mask", "is_std_zero")],
    TRAINER.format(scale="none"),
    "result = advantages",
)
for name, by_std in (("verl.grpo", True), ("verl.grpo(no std)", False)):
    function = ("verl/trainer/ppo/core_algos.py", "compute_grpo_outcome_advantage")
    CONVENTIONS[name] = ("verl", [function], "", VERL.format(by_std=by_std))
for estimator in ("group_norm", "dr_grpo", "rloo"):
    CONVENTIONS[f"openrlhf.{estimator}"] = (
        "openrlhf",
        [(MAKER, "compute_advantages_and_returns", "raw_rewards", "reward")],
        EXPERIENCES.format(estimator=estimator) + "exp_len, indices = [n], torch.arange(n)\n",
        "result = rewards[0]",
    )
for name, estimator, scale in (
    ("ms-swift.grpo", "grpo", "group"),
    ("ms-swift.rloo(group std)", "rloo", "group"),
    ("ms-swift.reinforce++", "reinforce_plus_plus", "batch"),
):
    CONVENTIONS[name] = (
        "ms-swift",
        [
            ("swift/utils/torch_utils.py", "nanstd"),
            ("swift/rl_core/advantage.py", "compute_advantages"),
        ],
        "from typing import *\n",
        SWIFT.format(estimator=estimator, scale=scale),
    )
for name, function in (("std", "standardized"), ("loo", "loo")):
    CONVENTIONS[f"rlhfbook.{name}"] = (
        RLHF_BOOK,
        [("code/policy_gradients/utils.py", f"compute_{function}_advantages")],
        "",
        f"result = compute_{function}_advantages(group[:, None])[:, 0]",
    )

# Runs in the environment with torch: reads programs and inputs, writes what came out.
WORKER = """
import json, math, sys
import numpy as np
try:
    import torch
    torch.set_num_threads(1)
    make = torch.from_numpy
except ImportError:
    torch, make = None, np.asarray
given, found = json.load(sys.stdin), {}
for name, program in given["programs"].items():
    found[name] = {}
    for label, values in given["inputs"].items():
        group = np.array([math.nan if v is None else v for v in values], dtype=np.float32)
        space = {"group": make(group), "torch": torch}
        try:
            exec(compile(program, name, "exec"), space)
            result = space["result"].tolist()
            found[name][label] = [v if math.isfinite(v) else None for v in result]
        except Exception as error:
            found[name][label] = f"{type(error).__name__}: {error}"
json.dump(found, sys.stdout)
"""


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirements", nargs="*", help="name or name==version; all without any")
    parser.add_argument("--store", action="store_true", help=f"write {MEASURED.name}")
    given = parser.parse_args(arguments)
    pinned = {name_of(requirement): requirement for requirement in given.requirements}
    asked = {source for source, *_ in CONVENTIONS.values()}
    unknown = pinned.keys() - asked
    if unknown:
        parser.error(f"no stack {', '.join(sorted(unknown))}; there are {', '.join(sorted(asked))}")
    python = torch_environment()
    stacks, advantages, rows = {}, {}, []
    for source in sorted(asked):
        if pinned and source not in pinned:
            continue
        conventions = {name: parts for name, parts in CONVENTIONS.items() if parts[0] == source}
        with tempfile.TemporaryDirectory() as folder:
            try:
                archive = obtain(pinned.get(source, source), folder)
            except OSError as error:
                print(f"{source} is left out: {error}")
                continue
            version, built = stacks[source] = version_of(archive)
            found = measure(python, archive, conventions)
        advantages |= found
        print(f"{source} {version}, built {built}: {', '.join(found)}")
        rows += [(source, version, built, *row) for row in changes(reference(), found)]
    for row in [("stack", "version", "built", "convention", "vector", "old", "new"), *rows]:
        print(*row, sep=" | ")
    if not rows:
        print("nothing changed")
    if given.store:
        store(stacks, advantages)
    return bool(rows)


def name_of(requirement):
    return re.match(r"[^=<>~! ]+", requirement)[0]


def torch_environment():
    """Return the Python of an environment with CPU torch, made once and kept under .cache."""
    folder = ROOT / ".cache" / "torch"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = folder / TORCH
    if not stamp.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", TORCH, "numpy"], check=True)
        stamp.touch()
    return python


def obtain(source, folder):
    """Return the archive of a stack, opened: a wheel of the package index, or a zip at an address.

    Raises OSError if the network does not give it.
    """
    if source.startswith("https://"):
        with urllib.request.urlopen(source, timeout=60) as answer:
            return zipfile.ZipFile(io.BytesIO(answer.read()))
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    process = subprocess.run([*pip, "--dest", folder, source], capture_output=True, text=True)
    if process.returncode:
        raise OSError(process.stderr.strip().splitlines()[-1])
    (wheel,) = Path(folder).glob("*.whl")
    return zipfile.ZipFile(io.BytesIO(wheel.read_bytes()))


def version_of(archive):
    """Return the version of a wheel, or the commit of an archive, and the day it was made."""
    built = date(*max(member.date_time for member in archive.infolist())[:3])
    for member in archive.namelist():
        if member.endswith(".dist-info/METADATA"):
            metadata = archive.read(member).decode()
            return re.search(r"^Version: (.*)$", metadata, re.M)[1], built.isoformat()
    return archive.comment.decode()[:12], built.isoformat()


def measure(python, archive, conventions):
    """Return {convention: {vector: advantages}}; a string is an error, also that of the cut."""
    inputs, programs, found = vectors()["inputs"], {}, {}
    for name, (_, parts, before, after) in conventions.items():
        try:
            programs[name] = "\n".join([SETTING, before, *(cut(archive, *p) for p in parts), after])
        except LookupError as error:
            found[name] = dict.fromkeys(inputs, f"LookupError: {error}")
    try:
        process = subprocess.run(
            [python, "-I", "-c", WORKER],
            input=json.dumps({"programs": programs, "inputs": inputs}),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
            check=True,
        )
    except subprocess.SubprocessError as error:
        return found | {name: dict.fromkeys(inputs, type(error).__name__) for name in programs}
    return found | json.loads(process.stdout)


def cut(archive, file, function, first=None, stop=None):
    """Return the source of a function without its decorators, or some statements of a method."""
    members = [name for name in archive.namelist() if f"/{name}".endswith(f"/{file}")]
    if len(members) != 1:
        raise LookupError(f"{file} is there {len(members)} times")
    tree = ast.parse(archive.read(members[0]))
    (found, *others) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
    ] or [None]
    if found is None or others:
        raise LookupError(f"{file} has no function {function}, or several")
    if first is None:
        found.decorator_list = []
        return ast.unparse(found)
    begin = position(found.body, first, function)
    end = begin + position(found.body[begin:], stop, function)
    return "\n".join(map(ast.unparse, found.body[begin:end]))


def position(statements, name, function):
    """Return the index of the first of the statements that binds the name."""
    for index, statement in enumerate(statements):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
                return index
    raise LookupError(f"{function} binds no {name}")


def changes(old, new):
    """Return [(convention, vector, old, new)] of the vectors that are not the same."""
    return [
        (name, label, old.get(name, {}).get(label, "none"), value)
        for name, rows in new.items()
        for label, value in rows.items()
        if old.get(name, {}).get(label, "none") != value
    ]


def vectors():
    return json.loads(VECTORS.read_text(encoding="utf-8"))


def reference():
    """Return the vectors of the table, and of earlier runs for what the table does not have."""
    return measured()["advantages"] | vectors()["advantages"]


def measured():
    if not MEASURED.exists():
        return {"stacks": {}, "advantages": {}}
    return json.loads(MEASURED.read_text(encoding="utf-8"))


def store(stacks, advantages):
    """Write versions, days and the vectors that the table does not have beside what was stored."""
    known, before, today = vectors()["advantages"], measured(), date.today().isoformat()
    rows = before["advantages"] | advantages
    content = {
        "how": f"tools/measure_stacks.py, CPU {TORCH}, float32, one thread, one group per call",
        "stacks": before["stacks"]
        | {
            name: {"version": version, "built": built, "measured": today}
            for name, (version, built) in stacks.items()
        },
        "advantages": {name: rows[name] for name in rows if name not in known},
    }
    MEASURED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
