// The embedded validator against an independent one: python3-jsonschema reads the schema as
// 2020-12, ours reads it as draft 7, and both must agree on every document.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>

#include "reports/validate.h"
#include "src/base/text.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// One change of the good document. `value` is JSON, or null to remove the member.
struct Mutation {
  const char* pointer;
  const char* value;
  bool good;
};

const Mutation mutations[] = {
    {"/schema", nullptr, false},
    {"/schema/name", "\"other.report\"", false},
    {"/schema/version", "\"2.0.0\"", false},
    {"/schema/version", "\"0.9.0\"", false},
    {"/schema/version", "\"1.0\"", false},
    {"/schema/version", "\"1.01.0\"", false},
    {"/schema/version", "\"1.12.3\"", true},
    {"/schema/version", "1", false},
    {"/tool/version", nullptr, false},
    {"/tool/version", "\"\"", false},
    {"/tool/colour", "\"red\"", false},
    {"/tool/git_dirty", "\"yes\"", false},
    {"/tool/git_dirty", "false", true},
    {"/tool/build/anything", "\"x\"", true},
    {"/tool/build/anything", "1", false},
    {"/surprise", "1", false},
    {"/started_at", "\"2026-11-21 03:33:00\"", false},
    {"/started_at", "\"2026-11-21T03:33:00+01:00\"", false},
    {"/started_at", "\"2026-11-21T03:33:00Z\"", true},
    {"/started_at", "null", false}, // no reason beside it
    {"/finished_at", nullptr, false},
    {"/command", "\"shmemctl topo\"", false},
    {"/command", "[]", true},
    {"/command", "[1]", false},
    {"/status", "\"done\"", false},
    {"/status", "\"failed\"", true},
    {"/exit_code", "4", false},
    {"/exit_code", "130", true},
    {"/exit_code", "130.0", true},
    {"/exit_code", "\"0\"", false},
    {"/exit_code", "true", false},
    {"/exit_code", "false", false},
    {"/job/pes", "-1", false},
    {"/job/pes", "8", true},
    {"/job/pes", "2.0", true},
    {"/job/pes", "2.5", false},
    {"/job/pes", "1e30", false},
    {"/job/pes", "99999999999999999999", false},
    {"/job/ranks", "8", false},
    {"/hosts/0/name", "7", false},
    {"/hosts/0/anything", "{\"more\": [1]}", true},
    {"/hosts/0/gpus/0/pci", "\"18:00.0\"", false},
    {"/hosts/0/hcas/0/firmware_reason", nullptr, false},
    {"/hosts/0/hcas/0/firmware_reason", "\"\"", false},
    {"/hosts/0/hcas/0/link_width", "\"16\"", false},
    {"/env/HCA_LIST", "1", false},
    {"/env/ANOTHER", "\"text\"", true},
    {"/topology", nullptr, true},
    {"/topology", "null", false},
    {"/topology", "[]", false},
    {"/topology/gpus", nullptr, false},
    {"/topology/gpus/0/index", "-1", false},
    {"/topology/gpus/0/pci", "\"0000:18:00.8\"", false},
    {"/topology/gpus/0/pci", "\"00010000:18:1f.7\"", true},
    {"/topology/gpus/0/more", "[]", true},
    {"/topology/gpus/0/uuid_reason", nullptr, false},
    {"/topology/gpus/0/vendor", "\"acme\"", false},
    {"/topology/gpus/1/numa", "3", true},
    {"/topology/gpus/1/numa", "-1", false},
    {"/topology/nics/0/rate_Gbps", "\"400G\"", false},
    {"/topology/nics/0/rate_Gbps", "-400", false},
    {"/topology/nics/0/rate_Gbps", "1e19", false},
    {"/topology/nics/0/pcie/width", "null", false},
    {"/topology/nics/0/pcie/colour", "1", false},
    {"/topology/nics/0/ports/0/number", "-1", false},
    {"/topology/nics/0/ports/0/state", "\"up\"", false},
    {"/topology/nics/0/ports/0/gids/0", "{\"index\": 0}", false},
    {"/topology/nics/0/ports/0/gids/0", "{\"index\": 0, \"value\": \"fe80::\"}", true},
    {"/topology/nics/1/name", nullptr, false},
    {"/topology/nics/1/pci_reason", nullptr, false},
    {"/topology/distances/matrix/0/1", "\"NEAR\"", false},
    {"/topology/distances/matrix/0/1", "\"NV1000\"", false},
    {"/topology/distances/matrix/0/1", "\"NV0\"", false},
    {"/topology/distances/matrix/0/1", "\"SYSTEM\"", false},
    {"/topology/distances/matrix/0/1", "null", true},
    {"/topology/distances/matrix/0", "\"X\"", false},
    {"/topology/distances/labels/0", "0", false},
    {"/topology/distances/unknown/0/cells/0", "[1]", false},
    {"/topology/distances/unknown/0/reason", "\"\"", false},
    {"/topology/model", "{}", false},
    {"/mapping", nullptr, true},
    {"/mapping/policy", "\"best\"", false},
    {"/mapping/world", nullptr, false},
    {"/mapping/version", "null", false},
    {"/mapping/pes/0/gpu", "-1", true},
    {"/mapping/pes/0/pe", "-1", false},
    {"/mapping/pes/0/nics/0/distance", "\"NEAR\"", false},
    {"/mapping/pes/0/nics/0/device", nullptr, false},
    {"/mapping/pes/0/extra", "1", true},
    {"/mapping/nics/0/pes/0", "\"0\"", false},
    {"/mapping/nics/0/load", "-0.5", false},
    {"/mapping/table", "[]", true},
    {"/mapping/table", "{}", false},
    {"/mapping/list", "{\"name\": \"NVSHMEM_HCA_LIST\", \"exclude\": true}", true},
    {"/mapping/list", "\"mlx5_0\"", false},
    {"/moe", "{}", false},
    {"/moe/0/routing_hash", "\"0123\"", false},
    {"/moe/0/seed", "-1", false},
    {"/moe/0/tokens/0", "-1", false},
    {"/moe/0/extra", "1", false},
    {"/moe/0/calls", R"({"dispatches": 3, "combines": 2})", true},
    {"/moe/0/calls", R"({"dispatches": 3})", false},
    {"/moe/0/launches",
     R"({"dispatch": [{"kernel": "pack", "blocks": 264, "sms": 132}],
         "combine": [{"kernel": "combine", "blocks": 24, "sms": 24}]})",
     true},
    {"/moe/0/launches", R"({"dispatch": [], "combine": [{"kernel": "combine", "blocks": 24}]})",
     false},
    {"/moe/0/settings",
     R"({"dispatch": {"sms": 24, "chunk_rows": 16}, "combine": {"chunk_rows": 1}})", true},
    {"/moe/0/settings", R"({"dispatch": {"chunk_rows": 0}, "combine": {}})", false},
    {"/moe/0/nvlinks",
     R"([{"host": "n", "gpu": "0000:1a:00.0", "ranks": [0], "out_bytes": null,
          "out_bytes_reason": "it was reset", "in_bytes": 1024, "resolution_bytes": 1024,
          "links": [{"link": 3, "out_bytes": null, "in_bytes": 1024}]}])",
     true},
    {"/moe/0/nvlinks",
     R"([{"host": "n", "gpu": "0000:1a:00.0", "ranks": [0], "out_bytes": -1, "in_bytes": 0,
          "links": []}])",
     false},
    {"/moe/0/memory/0/formula", nullptr, false},
    {"/moe/0/dispatch/sent_bytes", nullptr, false},
    {"/moe/0/waits/0/wait_us/0/1", "\"long\"", false},
    {"/moe/0/waits/0/verdicts/0", "\"\"", false},
    {"/mapping/advice/0/lines", "\"export A=1\"", false},
    {"/phases", nullptr, true},
    {"/phases/0/name", "\"\"", false},
    {"/phases/0/time_ms", "-1", false},
    {"/phases/0/time_ms", "\"1\"", false},
    {"/phases/0/slowest_pe", "1.5", false},
    {"/phases/1/slowest_pe", nullptr, false},
    {"/phases/1/extra", "1", false},
    {"/checks", nullptr, true},
    {"/checks/0/status", "\"ok\"", false},
    {"/checks/0/id", "\"Mem Lock\"", false},
    {"/checks/0/id", "\"mem--lock\"", false},
    {"/checks/0/fix", nullptr, false},
    {"/checks/0/group", nullptr, true},
    {"/results/0/case", "\"\"", false},
    {"/results/0/params/size_bytes", "-8", false},
    {"/results/0/params/size_bytes", "8.5", false},
    {"/results/0/params/size_bytes", "9223372036854775807", true},
    {"/results/0/params/size_bytes", "9223372036854775808", false},
    {"/results/0/params/size_bytes", "1e300", false},
    {"/results/0/params/other", "[1]", false},
    {"/results/0/params/other", "null", true},
    {"/results/0/stats", nullptr, true},
    {"/results/0/stats/n", "-1", false},
    {"/results/0/stats/n", nullptr, false},
    {"/results/0/stats/p99_reason", nullptr, false},
    {"/results/0/stats/p99", "3", true},
    {"/results/0/stats/max", "\"3\"", false},
    {"/results/0/stats/max", "1e200", false},
    {"/results/0/stats/stddev", "-1", false},
    {"/results/0/stats/p42", "1", false},
    {"/results/0/bandwidth_GBps", "-1", false},
    {"/results/0/bandwidth_GBps", "null", false},
    {"/results/0/link_fraction", "1.01", true},
    {"/results/0/verified", "\"unchecked\"", false}, // without a reason
    {"/results/0/verified", "\"maybe\"", false},
    {"/results/1/reason", nullptr, false},
    {"/results/1/reason", "\"\"", false},
    {"/results/0/status", "\"fail\"", false}, // without a reason
    {"/results/0/samples", "[]", true},
    {"/results/0/samples", "3", false},
    {"/results/0/samples/1", "null", false},
    {"/results/0/samples/1", "\"NaN\"", false},
    {"/results/0/samples/1", "-1", true},
    {"/results/0/samples/1", "1e19", false},
    {"/results/0/run", "-1", false},
    {"/results/0/run", "1.5", false},
    {"/results/0/run", nullptr, true},
    {"/checks/0/run", "0", true},
    {"/moe/0/run", "0", true},
    {"/runs", nullptr, true},
    {"/runs", "{}", false},
    {"/runs/0/hosts", nullptr, false},
    {"/runs/0/hosts/0", "7", false},
    {"/runs/0/finished_at_reason", nullptr, false},
    {"/runs/0/started_at", "\"yesterday\"", false},
    {"/runs/0/exit_code", "4", false},
    {"/runs/0/job/pes", "-1", false},
    {"/runs/0/extra", "1", false},
    {"/comparison", nullptr, true},
    {"/comparison", "[]", false},
    {"/comparison/counts/worse", nullptr, false},
    {"/comparison/counts/worst", "1", false},
    {"/comparison/alpha", "1.5", false},
    {"/comparison/rows/0/verdict", "\"slower\"", false},
    {"/comparison/rows/0/change", "-1.5", false},
    {"/comparison/rows/0/p", "2", false},
    {"/comparison/rows/0/base/value", "null", false},
    {"/comparison/rows/0/base/value", nullptr, true},
    {"/comparison/rows/0/params", "[]", false},
    {"/comparison/rows/1/reason", "\"\"", false},
    {"/comparison/differences/0/what", nullptr, false},
    {"/comparison/new/files/1", "1", false},
    {"/thresholds/0/passed", "1", false},
    {"/thresholds/0/expression", "\"\"", false},
    {"/thresholds/0/worst", "\"low\"", false},
    {"/nic_counters/0/run", "0", true},
    {"/nic_counters/0/before", "-1", false},
    {"/nic_counters/0/delta", "-20", true},
    {"/nic_counters/0/delta", "null", false},
    {"/nic_counters/0/counter", "\"\"", false},
    {"/nic_counters/1/after_reason", nullptr, false},
    {"/findings/0/severity", "\"fatal\"", false},
    {"/findings/0/id", "\"T102\"", false},
    {"/findings/0/fix", "\"\"", false},
    {"/findings/0/message", nullptr, false},
    {"/findings/0/effect", "\"slow\"", false},
    {"/findings", "{}", false},
    {"/findings", "[]", true},
};

json mutated(const Mutation& mutation) {
  json document = to_json(sample_full_report());
  const json::json_pointer pointer(mutation.pointer);
  if (mutation.value)
    document[pointer] = json::parse(mutation.value);
  else
    document[pointer.parent_pointer()].erase(pointer.back());
  return document;
}

std::string label(const Mutation& mutation) {
  return std::string(mutation.pointer) + " = " + (mutation.value ? mutation.value : "removed");
}

TEST(Validate, VerdictOnEveryMutation) {
  for (const Mutation& mutation : mutations) {
    const std::vector<SchemaViolation> violations = validate_report(mutated(mutation));
    EXPECT_EQ(violations.empty(), mutation.good)
        << label(mutation)
        << (violations.empty() ? "" : ": " + violations[0].pointer + " " + violations[0].message);
  }
}

TEST(Validate, PointsAtTheCulpritOrTheObjectThatLacksAKey) {
  for (const Mutation& mutation : mutations) {
    if (mutation.good)
      continue;
    bool named = false;
    std::string all;
    for (const SchemaViolation& violation : validate_report(mutated(mutation))) {
      all += violation.pointer + ": " + violation.message + "; ";
      EXPECT_EQ(violation.message.find('\n'), std::string::npos);
      const std::string above = json::json_pointer(mutation.pointer).parent_pointer().to_string();
      named = named || violation.pointer == mutation.pointer || violation.pointer == above ||
              violation.pointer.rfind(mutation.pointer, 0) == 0;
    }
    EXPECT_TRUE(named) << label(mutation) << " gave " << all;
  }
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe.get()))
    text.append(buffer, count);
  return text;
}

TEST(Validate, AgreesWithAnIndependentValidator) {
  if (std::system("python3 -c 'from jsonschema import Draft202012Validator' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-jsonschema with Draft202012Validator is not installed";
  std::string name = (fs::temp_directory_path() / "test-shmemctl-oracle-XXXXXX").string();
  const fs::path folder = ::mkdtemp(name.data());
  std::ofstream(folder / "schema.json") << report_schema_text();
  json documents = json::array();
  std::string expected;
  for (const Mutation& mutation : mutations) {
    documents.push_back(mutated(mutation));
    expected += validate_report(documents.back()).empty() ? "1" : "0";
  }
  std::ofstream(folder / "documents.json") << documents.dump();
  std::ofstream(folder / "check.py")
      << "import json, sys\n"
         "from jsonschema import Draft202012Validator as V\n"
         "schema = json.load(open(sys.argv[1] + '/schema.json'))\n"
         "V.check_schema(schema)\n"
         "validator = V(schema)\n"
         "documents = json.load(open(sys.argv[1] + '/documents.json'))\n"
         "print(''.join('01'[validator.is_valid(d)] for d in documents), end='')\n";
  const std::string verdicts =
      output_of("python3 " + (folder / "check.py").string() + " " + folder.string());
  fs::remove_all(folder);
  ASSERT_EQ(verdicts.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(verdicts[i], expected[i]) << label(mutations[i]);
}

/// Every object of the schema defines its keys, and is closed or one of those that may have more.
void check_documented(const json& schema, const std::string& at) {
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object() &&
      schema.value("type", json()) == "object") {
    EXPECT_TRUE(schema.contains("description")) << at;
    for (const auto& [key, member] : schema["properties"].items())
      EXPECT_TRUE(member.contains("description") || member.contains("$ref")) << at << "/" << key;
  }
  if (schema.is_structured())
    for (const auto& [key, member] : schema.items())
      check_documented(member, at + "/" + key);
}

/// Keywords that draft 7 and 2020-12 interpret differently, or that only one of them has.
void check_keywords(const json& schema, const std::string& at) {
  if (schema.is_object()) {
    for (const char* keyword :
         {"definitions", "dependencies", "additionalItems", "prefixItems", "format",
          "unevaluatedProperties", "unevaluatedItems", "dependentRequired", "dependentSchemas",
          "$anchor", "$dynamicRef", "$recursiveRef", "minContains", "maxContains", "contains"})
      EXPECT_FALSE(schema.contains(keyword) && !ends_with(at, "/properties"))
          << at << "/" << keyword;
  }
  if (schema.is_object() && schema.contains("$ref")) {
    EXPECT_EQ(schema.size(), 1u) << at << ": draft 7 ignores what is beside $ref";
  }
  if (schema.is_structured())
    for (const auto& [key, member] : schema.items())
      check_keywords(member, at + "/" + key);
}

TEST(Schema, DocumentsEveryKeyAndMeansTheSameInBothDrafts) {
  const json schema = json::parse(report_schema_text());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  check_documented(schema, "");
  check_keywords(schema, "");
  EXPECT_EQ(schema["additionalProperties"], false);
}

TEST(Validate, NeverThrowsWhateverTheDocumentIs) {
  for (const char* text :
       {"null", "3", "\"x\"", "[]", "{}", "{\"schema\": 1}", "{\"schema\": {\"name\": []}}",
        "{\"schema\": {\"name\": \"shmemctl.report\", \"version\": \"1.0.0\"}}"})
    EXPECT_FALSE(validate_report(json::parse(text)).empty()) << text;
}

TEST(Validate, IsBoundedForLargeDocuments) {
  json document = to_json(sample_report());
  document["started_at"] = std::string(1 << 20, '1'); // a pattern over a megabyte
  for (int i = 0; i < 100000; ++i)
    document["findings"].push_back(i);
  const std::vector<SchemaViolation> violations = validate_report(document);
  EXPECT_GT(violations.size(), 2u);
  EXPECT_LT(violations.size(), 300000u);
}

} // namespace
} // namespace shmemctl
