"""The order book of each instrument: what is bid and what is asked, and the best of both."""

import everview as ev

BUY, SELL = "buy", "sell"


def side(instrument, orders, kind):
    """The orders on one side of a book."""
    return [
        {"price": o.price, "quantity": o.quantity, "number": o.number}
        for o in orders
        if o.symbol == instrument.symbol and o.kind == kind
    ]


@ev.nested
def books(instruments, orders):
    """Each instrument with its bids and asks."""
    return [
        {
            "symbol": i.symbol,
            "bids": side(i, orders, BUY),
            "asks": side(i, orders, SELL),
        }
        for i in instruments
    ]


@ev.nested
def quotes(books):
    """The best prices of each instrument, and how much is on each side."""
    return [
        {
            "symbol": b.symbol,
            "bid": max((o.price for o in b.bids), default=None),
            "ask": min((o.price for o in b.asks), default=None),
            "bought": sum(o.quantity for o in b.bids),
            "sold": sum(o.quantity for o in b.asks),
        }
        for b in books
    ]


@ev.nested
def crossed(books):
    """Books in which somebody bids what another asks: their sides are passed on, not copied."""
    return [b for b in books if any(o.price >= p.price for o in b.bids for p in b.asks)]
