// SPDX-License-Identifier: MIT
#include "arch/quantity_text.hpp"

#include <limits>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using voltaic::UsageError;
using voltaic::arch::format_quantity;
using voltaic::arch::parse_quantity;

TEST_CASE("units carry SI and binary prefixes", "[arch][quantity]") {
  CHECK(parse_quantity("2.4TB/s", "bytes_per_s") == 2.4e12);
  CHECK(parse_quantity("900 GB/s", "bytes_per_s") == 900e9);
  CHECK(parse_quantity("80GB", "bytes") == 80e9);
  CHECK(parse_quantity("48KiB", "bytes") == 49152);
  CHECK(parse_quantity("1GiB", "bytes") == 1073741824);
  CHECK(parse_quantity("1410MHz", "hz") == 1.41e9);
  CHECK(parse_quantity("1.5e9", "hz") == 1.5e9);
  CHECK_THAT(parse_quantity("500ns", "s"), WithinRel(5e-7, 1e-12));
  CHECK(parse_quantity("2min", "s") == 120);
  CHECK(parse_quantity("250W", "w") == 250);
  CHECK(parse_quantity("19.5TFLOP/s", "flop_per_s") == 19.5e12);
  CHECK(parse_quantity("212 cycles", "cycles") == 212);
  CHECK(parse_quantity("108", "") == 108);
  CHECK_THAT(parse_quantity("90%", ""), WithinRel(0.9, 1e-12));
  CHECK(parse_quantity("+3", "") == 3);
}

TEST_CASE("a quantity that makes no sense is refused with an example", "[arch][quantity]") {
  for (const char* text :
       {"", " ", "fast", "nan", "inf", "-inf", "1e400", "2.4TB/s/s", "2.4 T B/s", "0x10", "1,5GB/s", "12GHz", "--3"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_quantity(text, "bytes_per_s"), UsageError);
  }
  CHECK_THROWS_WITH(parse_quantity("12GHz", "bytes_per_s"),
                    "expected bytes per second (such as 2.4TB/s), got \"12GHz\"");
  CHECK_THROWS_AS(parse_quantity("5GB", ""), UsageError);
  CHECK_THROWS_AS(parse_quantity("1e308TB", "bytes"), UsageError);
}

TEST_CASE("numbers for people have three digits and a prefix", "[arch][quantity]") {
  CHECK(format_quantity(1.555e12, "bytes_per_s") == "1.55 TB/s");
  CHECK(format_quantity(42949672960.0, "bytes") == "40.0 GiB");
  CHECK(format_quantity(512, "bytes") == "512 B");
  CHECK(format_quantity(1.59e-3, "s") == "1.59 ms");
  CHECK(format_quantity(373e-9, "s") == "373 ns");
  CHECK(format_quantity(0, "s") == "0 s");
  CHECK(format_quantity(1.41e9, "hz") == "1.41 GHz");
  CHECK(format_quantity(312e12, "flop_per_s") == "312 TFLOP/s");
  CHECK(format_quantity(3.06, "usd") == "3.06 USD");
  CHECK(format_quantity(108, "") == "108");
  CHECK(format_quantity(0.89, "") == "0.89");
  CHECK(format_quantity(999.9e9, "bytes_per_s") == "1.00 TB/s");
  CHECK(format_quantity(std::numeric_limits<double>::quiet_NaN(), "s") == "n/a");
}
