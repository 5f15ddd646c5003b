"""The site: Sphinx renders the stored outputs of notebooks/, the ones that nbval checks."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))  # for tools.site.site_pages

# The repository's address: the one constant that the site's buttons and the README's badges use.
# YOUR_ACCOUNT is a placeholder, which nobody can hold on GitHub: no account has an underscore. In
# GitHub Actions the real address takes its place.
REPOSITORY = "https://github.com/YOUR_ACCOUNT/feed-jax"
if "GITHUB_REPOSITORY" in os.environ:
    REPOSITORY = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"

owner, repository = urlsplit(REPOSITORY).path.strip("/").split("/")
html_baseurl = f"https://{owner.lower()}.github.io/{repository}/"

project = "Feed JAX"
author = "the Feed JAX contributors"
copyright = "the Feed JAX contributors, Apache-2.0"  # noqa: A001 (Sphinx's name)

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_sitemap",
    "sphinxext.opengraph",
    "notfound.extension",
    "tools.site.site_pages",
]
# Notebooks are rendered; md/ and the files for contributors on GitHub are not pages.
include_patterns = ["index.md", "pages/*.md", "notebooks/*.ipynb"]
exclude_patterns = ["**/.*"]

myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3  # the slugs that GitHub makes, in a page and from page to page
nb_render_markdown_format = "myst"  # tables, too
nb_execution_mode = "off"
nb_output_stderr = "error"
nb_merge_streams = True
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
copybutton_selector = "div.highlight-python pre, div.highlight-sh pre"  # code, not outputs

html_theme = "sphinx_book_theme"
html_title = "Feed JAX"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/favicon.svg"
html_sourcelink_suffix = ""  # the download button serves NAME.ipynb
html_show_sourcelink = False
html_use_index = False  # the glossary is the index
sitemap_url_scheme = "{link}"
sitemap_show_lastmod = False  # a shallow clone has no dates
sitemap_excludes = ["404.html", "search.html"]
# What others show beside a link to a page.
ogp_site_url = html_baseurl
ogp_image = "_static/card.png"
ogp_image_alt = "Feed JAX: from your data to a model that trains without waiting for it"
ogp_enable_meta_description = True
ogp_social_cards = {"enable": False}  # one picture for all pages
notfound_urls_prefix = urlsplit(html_baseurl).path
notfound_context = {
    "title": "Page not found",
    "body": "<h1>Page not found</h1><p>This address leads nowhere. Search the site, or take a "
    f'lesson from the <a href="{notfound_urls_prefix}index.html">front page</a>.</p>',
}
html_theme_options = {
    "repository_url": REPOSITORY,
    "repository_branch": "main",
    "path_to_docs": "",
    "use_repository_button": True,
    "use_source_button": True,
    "use_issues_button": True,
    "use_download_button": True,
    "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    "show_toc_level": 1,  # the contents open below the section that is read
    "navbar_persistent": [],  # the sidebar has the search field
    "extra_footer": "<p>MNIST: Yann LeCun and Corinna Cortes, "
    '<a href="https://creativecommons.org/licenses/by-sa/3.0/">CC BY-SA 3.0</a>. Photographs: '
    'danielbuechele and vultilion, <a href="https://creativecommons.org/licenses/by/2.0/">CC BY '
    "2.0</a>, cut and scaled.</p>",
}
html_context = {"default_mode": "auto"}
