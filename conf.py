"""The site: Sphinx renders the stored outputs of notebooks/, the ones that nbval checks."""

import os

# The repository's address: the one constant that the site's buttons and the README's badges use.
# OWNER is a placeholder; in GitHub Actions the real address takes its place.
REPOSITORY = "https://github.com/OWNER/feed-jax"
if "GITHUB_REPOSITORY" in os.environ:
    REPOSITORY = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"

project = "Feed JAX"
author = "the Feed JAX contributors"
copyright = "the Feed JAX contributors, Apache-2.0"  # noqa: A001 (Sphinx's name)

extensions = ["myst_nb", "sphinx_copybutton"]
# Notebooks are rendered; md/ and the files for contributors on GitHub are not pages.
include_patterns = ["index.md", "notebooks/*.ipynb"]
exclude_patterns = ["**/.*"]

myst_heading_anchors = 3  # the slugs that GitHub makes, in a page and from page to page
nb_execution_mode = "off"
nb_output_stderr = "error"
nb_merge_streams = True
nb_code_prompt_show = "Show the code"

html_theme = "sphinx_book_theme"
html_title = "Feed JAX"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "repository_url": REPOSITORY,
    "repository_branch": "main",
    "path_to_docs": "",
    "use_repository_button": True,
    "use_issues_button": True,
    "use_download_button": True,
    "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    "show_toc_level": 2,
    "navbar_persistent": [],  # the sidebar has the search field
}
html_context = {"default_mode": "auto"}
