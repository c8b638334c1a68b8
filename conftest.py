"""Markers, which decide what `make test` runs and where, and one browser for all tests that open a page."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("background-networking", "component-update", "dev-shm-usage", "gpu", "sync")
WAIT_FOR_PAGE = 300_000
"""Milliseconds that a page may take to do anything: a guard against hanging, not a measure."""

SLOW = re.compile(
    "|".join(
        [
            r"tests/core/test_alone\.py::test_the_wheel_works",  # builds, and installs from the package index
            r"tests/core/test_match\.py::test_it_is_match_evenly",
            r"tests/core/test_scaling\.py::test_before_a_match",
            r"tests/auditing/test_causes\.py::test_most_planted_causes_are_named\[0\.001",
            r"tests/auditing/test_(log_file|bad_logs)\.py::test_(memory|an_npz_beyond)",  # files larger than memory
            r"tests/bonuses/test_jax\.py::.*\[(RND|ICM.*|NovelD|E3B)\]",  # RIDE and episodic RND have all their parts
            r"tests/bonuses/test_jax\.py::test_((booleans|seeds).*\[(RIDE|episodic RND)\]|e3b_stays)",
            r"tests/bonuses/test_right\.py::test_a_noisy_television.*\[1\]",
            r"tests/docs/test_(pages|site|playground)\.py",  # run every page; build the site
            r"tests/integrations/test_examples\.py",  # trains to a threshold
            r"src/payback/bonuses/jax/",  # each doctest compiles; tests/bonuses checks the same functions
            r"lab/src/payback_lab/learners/arena/train\.py",
            r"tests/integrations/test_(sb3\.py::test_ppo_learns|torchrl\.py::test_the_example_learns)",  # likewise
            r"tests/integrations/test_off_policy\.py::test_(dqn|sac)\[2\]",  # tables learn from n-step targets, too
            r"lab/tests/test_examples\.py",
            r"lab/tests/test_cli\.py::test_(ctrl_c|a_disk_that_fills)",  # the command as a process, and its workers
            r"lab/tests/test_methods\.py::test_what_repays",
            r"lab/tests/environments/test_minigrid\.py::test_every_action.*\[(?!KeyCorridorS3R1\])",
            r"lab/tests/environments/test_minigrid\.py::test_another_time_limit.*\[(?!10\])",
            r"lab/tests/environments/test_minigrid\.py::test_(the_fewest|a_plan_solves|the_relaxed|a_changed_rule)",
            r"lab/tests/environments/.*test_every_step_equals_minigrid\[(?!5-)",  # the larger grids and longer walks
            r"lab/tests/environments/test_doorkey\.py::test_starts_are_distributed",
            r"lab/tests/environments/test_minigrid_vector\.py::test_(sb3_trains|gymnasiums_form.*\[(?!DoorKey-5x5\]))",
            r"lab/tests/experiments/test_arena\.py::(test_a_run_that_stops|test_the_optimum_is)",
            r"lab/tests/experiments/test_cliff_walking\.py::test_execute",
            r"lab/tests/experiments/test_curiosity\.py::test_a_short_run",
            r"lab/tests/experiments/test_doorkey_resume\.py",
            r"lab/tests/experiments/test_reach\.py::test_the_optimum_is.*\[10",
            r"lab/tests/intrinsic/test_rnd\.py::(test_networks|test_error|test_update_is.*\[hidden[12])",
            r"lab/tests/learners/(arena/|test_ppo)",  # compile whole learners, and train some
            r"lab/tests/learners/test_q_learning\.py::test_(same|the_law).*\[(?!grm-10\])",
            r"lab/tests/learners/test_q_learning\.py::test_(a_seed|a_broken|none_does|every_scheme|plain_im|seeds_differ)",
            r"lab/tests/report/test_docs\.py::test_it_writes",
            r"lab/tests/report/test_(arena|headline|reach_and_delay|studies)\.py",  # draw figures
            r"lab/tests/report/test_summary\.py::test_(report_from_runs|runs_cut_short|a_summary_read_back)",
            r"lab/tests/running/test_run\.py::test_(the_real_cliff|kill_9|two_processes|workers_end)",
            r"lab/tests/running/test_local\.py::test_(a_worker_that_dies_each|workers_that|ctrl_c|an_exception)",
            r"lab/tests/running/test_locks\.py::test_a_second_process",
        ]
    )
)
"""What takes seconds of CPU, and has a faster test of its subject in `make test` where that needs no more."""
HOSTS = re.compile(r"rllib|rllte|gymnax|rsl_rl|rl_zoo|skrl")
"""Hosts that the main environment cannot hold (pyproject.toml, `hosts`): named so in a test's file or parameters."""
NAMED = {
    "ray": re.compile(r"running/test_ray\.py"),
    "gymnasium": re.compile(r"tests/integrations/test_(gymnasium|truncation|bonus_reset)"),
    "torch": re.compile(r"torch", re.IGNORECASE),
    "jax": re.compile(r"jax", re.IGNORECASE),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its file, its parameters and its fixtures."""
    for item in items:
        name = item.nodeid
        in_hosts = name.startswith(("tests/integrations/", "tests/docs/test_pages.py")) and HOSTS.search(name)
        marks = [mark for mark, pattern in NAMED.items() if pattern.search(name)]
        marks += ["slow"] * bool(SLOW.match(name)) + ["host"] * bool(in_hosts)
        marks += ["browser"] * ("browser" in getattr(item, "fixturenames", ()))
        for mark in marks:
            item.add_marker(mark)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; one for the whole session, because Playwright cannot be started twice in a process."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: make test-all installs it"
    )
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium, or set CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", *(f"--disable-{name}" for name in QUIET)],
            timeout=WAIT_FOR_PAGE,
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Return a function that opens pages without a network; each keeps its console (`said`) and requests (`asked`)."""
    contexts = []

    def open_page(address: str | None = None, width: int = 1280, height: int = 800, **options: Any) -> Any:
        context = browser.new_context(offline=True, viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.set_default_timeout(WAIT_FOR_PAGE)
        if address:
            page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
