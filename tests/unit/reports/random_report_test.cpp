// Random reports: what the schema accepts is read and printed without an exception, and the result
// of to_json() is accepted.
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "reports/report_file.h"
#include "reports/validate.h"
#include "tests/support/every_writer.h"
#include "tests/support/schema_sampler.h"
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

TEST(RandomReport, WhatTheSchemaAcceptsIsReadAndPrinted) {
  Mutator mutator(2);
  int accepted = 0;
  for (int i = 0; i < 400; ++i) {
    json document = to_json(sample_full_report());
    // Mostly where the schema allows it.
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
    EXPECT_EQ(malformed(report), "") << document.dump();
    ASSERT_TRUE(validate_report(to_json(report)).empty()) << document.dump();
  }
  EXPECT_GT(accepted, 40);
}

TEST(RandomReport, WhatTheSchemaDescribesEveryWriterRenders) {
  std::mt19937_64 random(7);
  SchemaSampler sampler(json::parse(report_schema_text()),
                        [&random](std::uint64_t limit) { return random() % limit; });
  constexpr int documents = 150;
  int accepted = 0, with_rows = 0;
  for (int i = 0; i < documents; ++i) {
    const json document = sampler.document();
    if (!validate_report(document).empty())
      continue;
    ++accepted;
    const Report report = report_from_json(document, "invented");
    with_rows += report.results.empty() ? 0 : 1;
    ASSERT_EQ(malformed(report), "") << document.dump(2);
    ASSERT_EQ(to_json(parse_report(to_text(document), "invented")), to_json(report));
  }
  EXPECT_GT(accepted, documents * 3 / 4);
  EXPECT_GT(with_rows, documents / 3);
}

TEST(RandomReport, AnyTextOfAnyFieldIsPrintedSafe) {
  json full = to_json(sample_full_report());
  full["hotspots"] = sample_hotspots();
  std::vector<json::json_pointer> fields;
  const json flat = full.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    json changed = full;
    changed[json::json_pointer(pointer)] = std::string(300, 'w');
    if (value.is_string() && validate_report(changed).empty())
      fields.emplace_back(pointer);
  }
  EXPECT_GT(fields.size(), 100u);
  // Each text in all fields at once.
  for (const std::string& text : SchemaSampler::hostile_texts()) {
    json document = full;
    for (const json::json_pointer& field : fields)
      document[field] = text.size() < 2 ? "yy" : text; // some may not be empty
    Report report = report_from_json(document, "a foreign report");
    // A table has one section: without it another one is written.
    const std::vector<std::function<void()>> leave_out = {
        [] {},
        [&report] { report.comparison = nullptr; },
        [&report] { report.results.clear(); },
        [&report] { report.hotspots = nullptr; },
        [&report] { report.checks.clear(); },
        [&report] { report.mapping = nullptr; }};
    for (std::size_t i = 0; i < leave_out.size(); ++i) {
      leave_out[i]();
      ASSERT_EQ(malformed(report), "") << i << " sections left out: " << text;
    }
  }
}

TEST(RandomReport, HostileTextsInWhatTheSchemaDescribesArePrintedSafe) {
  std::mt19937_64 random(11);
  // Three quarters of the optional keys are present.
  const auto choose = [&random](std::uint64_t limit) {
    const std::uint64_t drawn = random();
    return limit == 3 && drawn % 4 > 0 ? limit - 1 : drawn / 4 % limit;
  };
  SchemaSampler sampler(json::parse(report_schema_text()), choose, SchemaSampler::hostile_texts());
  constexpr int documents = 40;
  int accepted = 0;
  for (int i = 0; i < documents; ++i) {
    const json document = sampler.document();
    if (!validate_report(document).empty())
      continue;
    ++accepted;
    ASSERT_EQ(malformed(report_from_json(document, "a foreign report")), "") << to_text(document);
  }
  EXPECT_GT(accepted, documents / 2);
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
    EXPECT_EQ(malformed(report), "") << to_json(report).dump();
    report.results.clear();
    report.checks.clear();
    EXPECT_FALSE(write_csv(report).empty());
  }
}

} // namespace
} // namespace shmemctl
