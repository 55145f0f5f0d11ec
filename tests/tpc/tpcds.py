"""TPC-DS: the tables and columns that the queries read: small, random, with NULLs, duplicates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

from tpc.sides import Change, Plain

Make: TypeAlias = Callable[[Random, int], Any]
FIRST_DAY = date(1998, 12, 26)
DAYS = range(0, 800, 3)
FIRST_DATE = 2_451_174
BIG, INT, MONEY, TEXT, DAY = pa.int64(), pa.int32(), pa.decimal128(7, 2), pa.string(), pa.date32()


def key(start: int = 1) -> tuple[pa.DataType, Make]:
    """Numbers from `start` on."""
    return BIG, lambda _c, n: start + n


def one_of(*values: Any) -> tuple[pa.DataType, Make]:
    """Any of the values."""
    return (INT if isinstance(values[0], int) else TEXT), lambda c, _n: c.choice(values)


def between(low: int, high: int) -> tuple[pa.DataType, Make]:
    """A whole number."""
    return INT, lambda c, _n: c.randint(low, high)


def money(low: int, high: int) -> tuple[pa.DataType, Make]:
    """An amount; now and then none."""

    def make(chance: Random, _n: int) -> Decimal | None:
        return (
            None if chance.random() < 0.03 else Decimal(chance.randint(100 * low, 100 * high)) / 100
        )

    return MONEY, make


def named(word: str, different: int = 10**6) -> tuple[pa.DataType, Make]:
    """A word and a number."""
    return TEXT, lambda _c, n: f"{word} {n % different}"


def to(table: str, gaps: float = 0.04) -> tuple[pa.DataType, Make]:
    """The key of a row of another table, or NULL."""

    def make(chance: Random, _n: int) -> int | None:
        if chance.random() < gaps:
            return None
        if table == "date_dim":
            return FIRST_DATE + chance.choice(DAYS)
        return chance.randint(1, COUNTS[table])

    return BIG, make


def offset() -> tuple[pa.DataType, Make]:
    """An offset from Greenwich, in hours."""
    return pa.decimal128(5, 2), lambda c, _n: Decimal(c.choice((-5, -6)))


def of_day(type_: pa.DataType, fact: Callable[[date], Any]) -> tuple[pa.DataType, Make]:
    """A fact about the day of a row."""
    return type_, lambda _c, n: fact(FIRST_DAY + timedelta(days=DAYS[n]))


ZIPS = ("24128", "76232", "65084", "85669", "86197", "88274", "24999", "76000")
CITIES = ("Fairview", "Midway", "Oak Grove", "Edgewood")
COUNTIES = ("Williamson County", "Ziebach County")
STATES = ("TN", "CA", "GA", "TX", "OH")
CATEGORIES = ("Books", "Home", "Music", "Sports", "Women", "Men", "Jewelry", "Electronics")
CLASSES = ("personal", "portable", "accessories", "classical", "fishing")
FLAGS = ("Y", "N")
COUNTS = {
    "date_dim": len(DAYS),
    "time_dim": 24,
    "item": 36,
    "store": 4,
    "customer": 40,
    "customer_address": 25,
    "customer_demographics": 30,
    "household_demographics": 24,
    "income_band": 5,
    "promotion": 6,
    "warehouse": 3,
    "ship_mode": 4,
    "reason": 4,
    "call_center": 3,
    "web_site": 3,
    "web_page": 4,
    "inventory": 700,
    "store_sales": 600,
    "catalog_sales": 400,
    "web_sales": 400,
    "store_returns": 120,
    "catalog_returns": 80,
    "web_returns": 80,
}


def _sales(letters: str, extra: dict[str, tuple[pa.DataType, Make]]) -> dict[str, Any]:
    """What the three kinds of sales have in common."""
    common = {
        "sold_date_sk": to("date_dim"),
        "sold_time_sk": to("time_dim"),
        "item_sk": to("item", 0),
        "promo_sk": to("promotion"),
        "quantity": between(1, 40),
        "wholesale_cost": money(1, 90),
        "list_price": money(1, 190),
        "sales_price": money(1, 180),
        "coupon_amt": money(0, 60),
        "ext_discount_amt": money(0, 90),
        "ext_sales_price": money(1, 900),
        "ext_wholesale_cost": money(1, 900),
        "ext_list_price": money(1, 990),
        "ext_tax": money(0, 99),
        "net_paid": money(1, 900),
        "net_profit": money(-300, 900),
    }
    return {f"{letters}_{name}": made for name, made in (common | extra).items()}


def _shipped(extra: dict[str, tuple[pa.DataType, Make]]) -> dict[str, tuple[pa.DataType, Make]]:
    """What is sold by catalog or on the web is shipped."""
    return {
        "order_number": (BIG, lambda c, _n: c.randint(1, 120)),
        "ship_date_sk": to("date_dim"),
        "bill_customer_sk": to("customer"),
        "bill_cdemo_sk": to("customer_demographics"),
        "bill_addr_sk": to("customer_address"),
        "ship_customer_sk": to("customer"),
        "ship_addr_sk": to("customer_address"),
        "ship_hdemo_sk": to("household_demographics"),
        "ship_mode_sk": to("ship_mode"),
        "warehouse_sk": to("warehouse"),
        "ext_ship_cost": money(1, 90),
    } | extra


def _returns(letters: str, extra: dict[str, tuple[pa.DataType, Make]]) -> dict[str, Any]:
    """What the three kinds of returns have in common; item and order are those of a sale."""
    common = {
        "returned_date_sk": to("date_dim"),
        "item_sk": to("item", 0),
        "reason_sk": to("reason"),
        "return_quantity": between(1, 20),
        "return_amt": money(1, 400),
        "return_amt_inc_tax": money(1, 440),
        "refunded_cash": money(0, 300),
        "fee": money(0, 50),
        "net_loss": money(1, 200),
    }
    return {f"{letters}_{name}": made for name, made in (common | extra).items()}


TABLES: dict[str, dict[str, tuple[pa.DataType, Make]]] = {
    "date_dim": {
        "d_date_sk": (BIG, lambda _c, n: FIRST_DATE + DAYS[n]),
        "d_date": of_day(DAY, lambda d: d),
        "d_year": of_day(INT, lambda d: d.year),
        "d_moy": of_day(INT, lambda d: d.month),
        "d_dom": of_day(INT, lambda d: d.day),
        "d_qoy": of_day(INT, lambda d: (d.month + 2) // 3),
        "d_dow": of_day(INT, lambda d: d.isoweekday() % 7),
        "d_month_seq": of_day(INT, lambda d: (d.year - 1900) * 12 + d.month - 1),
        "d_week_seq": of_day(INT, lambda d: (d - date(1899, 12, 31)).days // 7),
        "d_day_name": of_day(TEXT, lambda d: d.strftime("%A")),
    },
    "time_dim": {
        "t_time_sk": key(),
        "t_hour": (INT, lambda _c, n: (8, 9, 12, 19, 20, 21)[n % 6]),
        "t_minute": (INT, lambda _c, n: 15 * (n // 6)),
        "t_meal_time": (TEXT, lambda _c, n: ("breakfast", None, "lunch", "dinner")[n % 4]),
    },
    "item": {
        "i_item_sk": key(),
        "i_item_id": named("item", 30),
        "i_item_desc": named("about", 20),
        "i_current_price": money(1, 99),
        "i_wholesale_cost": money(1, 80),
        "i_brand_id": between(1, 5),
        "i_brand": one_of("brand 1", "brand 2", "brand 3"),
        "i_class": one_of(*CLASSES),
        "i_category_id": between(1, 8),
        "i_category": one_of(*CATEGORIES),
        "i_manufact_id": between(1, 8),
        "i_manufact": one_of("able", "bar", "cally", "ese"),
        "i_manager_id": between(1, 4),
        "i_product_name": named("product", 20),
        "i_color": one_of("red", "blue", "pink", "slate"),
        "i_size": one_of("small", "medium", "large"),
    },
    "store": {
        "s_store_sk": key(),
        "s_store_id": named("store", 3),
        "s_store_name": one_of("ese", "ought", "able"),
        "s_state": one_of("TN"),
        "s_county": one_of(*COUNTIES),
        "s_city": one_of("Fairview", "Midway"),
        "s_zip": one_of(*ZIPS),
        "s_gmt_offset": offset(),
        "s_company_id": between(1, 2),
        "s_company_name": one_of("Unknown", "able"),
        "s_number_employees": between(200, 300),
        "s_street_number": one_of("1", "22", "333"),
    },
    "customer": {
        "c_customer_sk": key(),
        "c_customer_id": named("customer"),
        "c_current_cdemo_sk": to("customer_demographics"),
        "c_current_hdemo_sk": to("household_demographics"),
        "c_current_addr_sk": to("customer_address"),
        "c_first_name": one_of("Ada", "Bob", "Cy", None),
        "c_last_name": one_of("Hill", "Lake", "Moor", "Wood", None),
        "c_salutation": one_of("Dr.", "Ms.", "Mr."),
        "c_preferred_cust_flag": one_of(*FLAGS, None),
        "c_birth_year": between(1930, 1990),
        "c_birth_country": one_of("TOGO", "PERU", "CHAD"),
        "c_email_address": named("mail"),
    },
    "customer_address": {
        "ca_address_sk": key(),
        "ca_street_number": one_of("4", "55", "666"),
        "ca_city": one_of(*CITIES),
        "ca_county": one_of("Rush County", "Toole County", "Dona Ana County", "Else County"),
        "ca_state": one_of(*STATES),
        "ca_zip": one_of(*ZIPS),
        "ca_country": one_of("United States"),
        "ca_gmt_offset": offset(),
    },
    "customer_demographics": {
        "cd_demo_sk": key(),
        "cd_gender": one_of("M", "F"),
        "cd_marital_status": one_of("M", "S", "D", "W"),
        "cd_education_status": one_of("College", "Advanced Degree", "2 yr Degree", "4 yr Degree"),
        "cd_purchase_estimate": one_of(500, 1000, 1500),
        "cd_credit_rating": one_of("Good", "Low Risk", "Unknown"),
        "cd_dep_count": between(0, 3),
    },
    "household_demographics": {
        "hd_demo_sk": key(),
        "hd_income_band_sk": to("income_band"),
        "hd_buy_potential": one_of(">10000", "1001-5000", "Unknown"),
        "hd_dep_count": between(0, 5),
        "hd_vehicle_count": between(0, 3),
    },
    "income_band": {
        "ib_income_band_sk": key(),
        "ib_lower_bound": (INT, lambda _c, n: 10000 * n),
        "ib_upper_bound": (INT, lambda _c, n: 10000 * (n + 1)),
    },
    "promotion": {
        "p_promo_sk": key(),
        "p_channel_dmail": one_of(*FLAGS),
        "p_channel_email": one_of(*FLAGS),
        "p_channel_event": one_of(*FLAGS),
        "p_channel_tv": one_of(*FLAGS),
    },
    "warehouse": {
        "w_warehouse_sk": key(),
        "w_warehouse_name": named("a house of many wares"),
        "w_state": one_of("TN", "GA"),
    },
    "ship_mode": {"sm_ship_mode_sk": key(), "sm_type": one_of("EXPRESS", "OVERNIGHT", "LIBRARY")},
    "reason": {"r_reason_sk": key(), "r_reason_desc": named("reason")},
    "call_center": {
        "cc_call_center_sk": key(),
        "cc_call_center_id": named("center"),
        "cc_name": one_of("North", "South"),
        "cc_county": one_of("Williamson County"),
        "cc_manager": one_of("Bob", "Eve"),
    },
    "web_site": {
        "web_site_sk": key(),
        "web_name": one_of("site 1", "site 2"),
        "web_company_name": one_of("pri", "able"),
    },
    "web_page": {"wp_web_page_sk": key(), "wp_char_count": between(3000, 6500)},
    "inventory": {
        "inv_date_sk": to("date_dim", 0),
        "inv_item_sk": to("item", 0),
        "inv_warehouse_sk": to("warehouse", 0),
        "inv_quantity_on_hand": between(0, 900),
    },
    "store_sales": _sales(
        "ss",
        {
            "ticket_number": (BIG, lambda c, _n: c.randint(1, 200)),
            "customer_sk": to("customer"),
            "cdemo_sk": to("customer_demographics"),
            "hdemo_sk": to("household_demographics"),
            "addr_sk": to("customer_address", 0.1),
            "store_sk": to("store"),
        },
    ),
    "catalog_sales": _sales("cs", _shipped({"call_center_sk": to("call_center")})),
    "web_sales": _sales(
        "ws", _shipped({"web_site_sk": to("web_site"), "web_page_sk": to("web_page")})
    ),
    "store_returns": _returns(
        "sr",
        {
            "ticket_number": (BIG, lambda c, _n: c.randint(1, 200)),
            "customer_sk": to("customer"),
            "cdemo_sk": to("customer_demographics"),
            "store_sk": to("store"),
        },
    ),
    "catalog_returns": _returns(
        "cr",
        {
            "order_number": (BIG, lambda c, _n: c.randint(1, 120)),
            "returning_customer_sk": to("customer"),
            "returning_addr_sk": to("customer_address"),
            "call_center_sk": to("call_center"),
        },
    ),
    "web_returns": _returns(
        "wr",
        {
            "order_number": (BIG, lambda c, _n: c.randint(1, 120)),
            "returning_customer_sk": to("customer"),
            "returning_addr_sk": to("customer_address"),
            "returning_cdemo_sk": to("customer_demographics"),
            "refunded_cdemo_sk": to("customer_demographics"),
            "refunded_addr_sk": to("customer_address"),
        },
    ),
}
FACTS = tuple(name for name in TABLES if name.endswith(("sales", "returns", "inventory")))
KEYS = {name: (next(iter(columns)),) for name, columns in TABLES.items() if name not in FACTS}
SOLD = {
    "store_returns": ("store_sales", ("item_sk", "ticket_number", "customer_sk")),
    "catalog_returns": ("catalog_sales", ("item_sk", "order_number")),
    "web_returns": ("web_sales", ("item_sk", "order_number")),
}


def rows(table: str, count: int, chance: Random, sold: pa.Table | None = None) -> pa.Table:
    """Random rows of a table; of returns, most are of something that was sold."""
    columns = TABLES[table]
    made = [{c: make(chance, n) for c, (_, make) in columns.items()} for n in range(count)]
    if sold is not None and sold.num_rows:
        short, long = (
            name.split("_")[0][0] + name.split("_")[1][0] for name in (table, SOLD[table][0])
        )
        for row in made[: count * 4 // 5]:
            sale = sold.slice(chance.randrange(sold.num_rows), 1).to_pylist()[0]
            row |= {f"{short}_{c}": sale[f"{long}_{c}"] for c in SOLD[table][1]}
    if table in FACTS:
        made += made[: count // 10]
    schema = pa.schema((name, type_) for name, (type_, _) in columns.items())
    return pa.Table.from_pylist(made, schema)


def tables(seed: int) -> dict[str, pa.Table]:
    """All tables."""
    chance = Random(seed)
    made: dict[str, pa.Table] = {}
    for name, count in COUNTS.items():
        sold = made.get(SOLD[name][0]) if name in SOLD else None
        made[name] = rows(name, count, chance, sold)
    return made


class Trade:
    """Sales and returns come and go; items and customers change; a table is emptied once."""

    def __init__(self, plain: Plain, seed: int) -> None:
        self._plain = plain
        self._chance = Random(seed)
        self._number = 0

    def change(self) -> Change:
        """The next transaction."""
        self._number += 1
        change = Change()
        for name in FACTS:
            there = self._plain.arrow(f"FROM {name} ORDER BY ALL")
            emptied = name == "web_returns" and self._number == 2
            count = there.num_rows if emptied else min(8, there.num_rows)
            taken = pa.array(self._chance.sample(range(there.num_rows), count), BIG)
            change.gone[name] = there.take(taken)
            if not emptied:
                sold = self._plain.table(SOLD[name][0]) if name in SOLD else None
                change.come[name] = rows(name, 10, self._chance, sold)
        for name in ("item", "customer", "customer_address", "store"):
            old = self._plain.arrow(f"FROM {name} ORDER BY ALL")
            old = old.take([self._chance.randrange(old.num_rows)])
            new = rows(name, 1, self._chance).to_pylist()[0] | {
                column: old.column(column)[0].as_py() for column in KEYS[name]
            }
            change.gone[name], change.come[name] = old, pa.Table.from_pylist([new], old.schema)
        return change
