"""Products, each with what is similar to it and what is bought with it."""

import everview as ev


def bought_with(product, lines):
    """The lines of other products in the baskets with a product."""
    baskets = [line.basket for line in lines if line.product == product.id]
    return [
        line
        for basket in baskets
        for line in lines
        if line.basket == basket and line.product != product.id
    ]


@ev.nested
def related_products(products, lines):
    """Each product with lists of others."""
    return [
        {
            "name": p.name,
            "similar": [
                q.name
                for q in products
                if q.id != p.id and (q.kind == p.kind or q.maker == p.maker)
            ],
            "together": [
                {"name": q.name, "basket": b.basket}
                for b in bought_with(p, lines)
                for q in products
                if q.id == b.product
            ],
            "sold": len([line for line in lines if line.product == p.id]),
        }
        for p in products
    ]


@ev.nested
def alone(related_products):
    """Products that are like no other, with what is bought with them."""
    return [
        {"name": p.name, "together": p.together} for p in related_products if len(p.similar) == 0
    ]
