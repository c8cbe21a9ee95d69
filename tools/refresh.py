"""Run every notebook from a fresh kernel and store its outputs.

What is stored depends on the cells alone: no times, no versions, no names of machines.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

CHAPTERS = Path(__file__).resolve().parent.parent / "chapters"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SECONDS_PER_CELL = 120


def notebooks():
    """Return the paths of all notebooks in the order of reading."""
    return sorted(CHAPTERS.glob("*.ipynb"))


def run(path):
    """Return the notebook with the outputs of a run of its own, nothing else changed."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],  # no notice about the transport
        coalesce_streams=True,
        resources={"metadata": {"path": CHAPTERS}},
    )
    client.execute()
    notebook.metadata.update(KERNEL)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.pop("metadata", None)
            if output.output_type in ("display_data", "execute_result"):
                output.metadata = {}
    return notebook


if __name__ == "__main__":
    for path in notebooks():
        print(path.name, flush=True)
        nbformat.write(run(path), path)
