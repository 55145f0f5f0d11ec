"""Documents with their sections, and sections with their comments."""

import everview as ev

BUSY = 2


@ev.nested
def outlines(documents, sections, comments):
    """Each document with its sections, each of these with its comments."""
    return [
        {
            "title": d.title,
            "sections": [
                {
                    "heading": s.heading,
                    "comments": [
                        {"author": c.author, "said": c.said} for c in comments if c.section == s.id
                    ],
                }
                for s in sections
                if s.document == d.id
            ],
        }
        for d in documents
    ]


@ev.nested
def busy_sections(outlines):
    """Sections with several comments: these are passed on, not copied."""
    return [
        {"title": d.title, "heading": s.heading, "comments": s.comments}
        for d in outlines
        for s in d.sections
        if len(s.comments) >= BUSY
    ]


@ev.nested
def authors(outlines):
    """Everybody who has written a comment, with the documents, once for each comment."""
    return [
        {"author": c.author, "title": d.title}
        for d in outlines
        for s in d.sections
        for c in s.comments
    ]
