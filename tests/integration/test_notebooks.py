"""The notebooks of examples/ run from top to bottom, each in a folder of its own."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own libraries
def test_notebooks_run(tmp_path, path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": tmp_path}}
    nbclient.NotebookClient(notebook, timeout=500, kernel_name="python3", resources=place).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    errors = [output for cell in code for output in cell.outputs if output.get("name") == "stderr"]
    assert not any("Traceback" in output.text for output in errors)
    assert (tmp_path / "report").exists() or list(tmp_path.glob("results/*/report/index.html"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_store_no_outputs(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
