// Random reports: what the schema accepts is read and printed without an exception, and what
// to_json() gives is accepted.
#include <gtest/gtest.h>
#include <random>
#include <sstream>

#include "reports/csv.h"
#include "reports/html/page_model.h"
#include "reports/html/write_html.h"
#include "reports/junit.h"
#include "reports/prometheus.h"
#include "reports/text.h"
#include "reports/validate.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

class Mutator {
public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  json value() {
    static const std::vector<json> values = {nullptr,
                                             true,
                                             0,
                                             1,
                                             -1,
                                             7,
                                             2.5,
                                             1e17,
                                             -1e17,
                                             9223372036854775807,
                                             "",
                                             "X",
                                             "NV3",
                                             "?",
                                             "a\x1b[1m",
                                             "mlx5_0",
                                             "pass",
                                             json::array(),
                                             json({1}),
                                             json::object(),
                                             "0000:18:00.0"};
    return values[below(values.size())];
  }

  /// Changes one member somewhere: replaced, removed, doubled, or a new one.
  void mutate(json& document) {
    json* at = &document;
    for (std::size_t depth = 0; depth < 1 + below(6); ++depth) {
      if (!at->is_structured() || at->empty())
        break;
      auto member = at->begin();
      std::advance(member, static_cast<std::ptrdiff_t>(below(at->size())));
      at = &*member;
    }
    switch (below(4)) {
    case 0:
      *at = value();
      break;
    case 1:
      if (at->is_object() && !at->empty())
        at->erase(std::next(at->begin(), static_cast<std::ptrdiff_t>(below(at->size()))));
      break;
    case 2:
      if (at->is_array())
        at->push_back(at->empty() ? value() : json((*at)[below(at->size())]));
      break;
    default:
      if (at->is_object())
        (*at)["extra"] = value();
    }
  }

private:
  std::mt19937_64 random_;
};

void print_every_way(const Report& report) {
  for (const bool flag : {false, true}) {
    std::ostringstream out;
    TextStyle style;
    style.verbose = flag;
    style.utf8 = !flag;
    style.width = flag ? 40 : 0;
    write_text(out, report, style);
    EXPECT_FALSE(out.str().empty());
  }
  EXPECT_FALSE(write_csv(report).empty());
  EXPECT_FALSE(write_junit(report).empty());
  EXPECT_FALSE(write_prometheus(report).empty());
  EXPECT_FALSE(html::script_json(html::page_model({{{"random", report}}, {}})).empty());
}

TEST(RandomReport, WhatTheSchemaAcceptsIsReadAndPrinted) {
  Mutator mutator(2);
  int accepted = 0;
  for (int i = 0; i < 400; ++i) {
    json document = to_json(sample_full_report());
    // Mostly where the schema leaves room.
    static const char* const parts[] = {"topology", "mapping", "comparison", "runs"};
    json& part = i % 5 == 0 ? document : document[parts[i % 5 - 1]];
    for (std::size_t changes = 1 + mutator.below(3); changes > 0; --changes)
      mutator.mutate(part);
    if (!validate_report(document).empty()) {
      EXPECT_THROW(report_from_json(document, "random"), Error);
      continue;
    }
    ++accepted;
    const Report report = report_from_json(document, "random");
    print_every_way(report);
    ASSERT_TRUE(validate_report(to_json(report)).empty()) << document.dump();
  }
  EXPECT_GT(accepted, 40);
}

TEST(RandomReport, SectionsThatNoSchemaSawArePrintedToo) {
  Mutator mutator(3);
  for (int i = 0; i < 600; ++i) {
    Report report = sample_full_report();
    for (std::size_t changes = mutator.below(12); changes > 0; --changes) {
      mutator.mutate(report.topology);
      mutator.mutate(report.mapping);
      mutator.mutate(report.comparison);
      mutator.mutate(report.thresholds);
    }
    print_every_way(report);
    report.results.clear();
    report.checks.clear();
    EXPECT_FALSE(write_csv(report).empty());
  }
}

} // namespace
} // namespace shmemctl
