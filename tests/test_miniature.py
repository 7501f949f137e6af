"""The small dataset that tests of code stand on: what it holds, and all that is made of it."""

import nbformat
import polars as pl
import pytest
from conftest import MINIATURE, ROOT, Tree, copy_tree

from deathmatch.analysis import phrases
from deathmatch.data import archive, tables
from deathmatch.paper.display import MIME
from deathmatch.plan import files
from deathmatch.run.study import experiments_of

EXPERIMENTS = sorted(path.name for path in MINIATURE.iterdir() if path.is_dir())
pytestmark = pytest.mark.usefixtures("miniature")


def read(experiment: str, table: str = "points") -> pl.DataFrame:
    return tables.read(MINIATURE.name, experiment, table)


def test_it_has_every_experiment_and_is_small():
    named = {name for path in ROOT.glob("notebooks/*.md") for name in experiments_of(path)}
    assert sorted(named.intersection(EXPERIMENTS)) == EXPERIMENTS and len(EXPERIMENTS) > 11
    assert sum(path.stat().st_size for path in MINIATURE.rglob("*.*")) <= 3_000_000
    for experiment in EXPERIMENTS:
        assert read(experiment, "trials")["n"].unique().sort().to_list() == [1, 2, 3]


def test_its_tables_are_made_again_from_its_raw_logs(tmp_path, network):
    tree = Tree(copy_tree(tmp_path / "tree"), network)
    logged = sorted(path.parent.name for path in MINIATURE.glob(f"*/{archive.NAME}"))
    tree.miniature(experiments=logged)
    tree.deathmatch("tidy", f"data/{MINIATURE.name}").succeeded()
    for experiment in logged:
        for table in files.dataset(MINIATURE.name).tables(experiment):
            file = tree.path / "data" / MINIATURE.name / experiment / f"{table}.parquet"
            made = pl.read_parquet(file)
            key = ["server", "variant", "n"]
            kept = read(experiment, table).join(made, on=key, how="semi", maintain_order="left")
            assert len(made) or table not in ("trials", "points"), (experiment, table)
            assert kept.select(made.columns).equals(made), (experiment, table)


def test_its_paper_has_every_part(written):
    """A whole dataset has the paper, with every figure, table and number."""
    made = sorted((written / "paper" / MINIATURE.name / "notebooks").glob("*.ipynb"))
    notebooks = sorted(path.stem for path in (ROOT / "notebooks").glob("*.md"))
    assert [path.stem for path in made] == notebooks
    kinds = set()
    for path in made:
        for cell in nbformat.read(path, 4).cells:
            for output in cell.get("outputs", []):
                shown = output.get("data", {}).get(MIME, {})
                kinds.add(shown.get("kind"))
    assert {"figure", "table", "values"} <= kinds and "absent" not in kinds
    page = (written / "paper" / MINIATURE.name / "deathmatch.html").read_text()
    assert all(f'id="tbl-appendix-{name}"' in page for name in ("sittings", "drift"))
    assert phrases.NOT_MEASURED not in page and str(written) not in page
    assert (written / "paper" / MINIATURE.name / "explore.html").is_file()
