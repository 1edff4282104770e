// The registry and how cases are chosen from it.
#include <gtest/gtest.h>

#include <set>

#include "src/base/error.h"
#include "src/instruments/bench/case.h"

using namespace shmemctl;
using namespace shmemctl::bench;

namespace {

std::vector<std::string> chosen(const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const BenchCase& bench_case : choose_cases(host_cases(), patterns))
    names.push_back(bench_case.info.name);
  return names;
}

std::string fix_for(const std::string& pattern) {
  try {
    chosen({pattern});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("\"" + pattern + "\""), std::string::npos) << error.message();
    return error.fix();
  }
  ADD_FAILURE() << pattern << " was found";
  return "";
}

using Names = std::vector<std::string>;

} // namespace

TEST(Registry, SaysEverythingAboutEachCase) {
  std::set<std::string> names;
  for (const BenchCase& bench_case : host_cases()) {
    const CaseInfo& info = bench_case.info;
    SCOPED_TRACE(info.name);
    EXPECT_TRUE(names.insert(info.name).second) << "twice";
    EXPECT_FALSE(info.group.empty() || info.measures.empty());
    EXPECT_NE(info.how.find("Verified"), std::string::npos);
    EXPECT_FALSE(info.traffics.empty());
    EXPECT_LE(info.min_bytes, info.max_bytes);
    EXPECT_EQ(info.min_bytes % info.element_bytes, 0u);
    EXPECT_EQ(info.max_bytes % info.element_bytes, 0u);
    if (!info.only_bytes.empty()) {
      EXPECT_EQ(info.only_bytes.front(), info.min_bytes);
      EXPECT_EQ(info.only_bytes.back(), info.max_bytes);
    }
    Point point;
    point.traffic = info.traffics.at(0);
    const auto made = bench_case.make(point);
    EXPECT_TRUE(made->unverified_reason().empty());
  }
  for (const char* name : {"put",
                           "put-latency",
                           "get",
                           "get-latency",
                           "p",
                           "g",
                           "put-signal",
                           "iput",
                           "message-rate",
                           "put-pingpong",
                           "put-signal-pingpong",
                           "signal-pingpong",
                           "barrier",
                           "sync",
                           "broadcast",
                           "fcollect",
                           "collect",
                           "alltoall",
                           "reduce",
                           "reduce-float",
                           "reducescatter",
                           "atomic-rate",
                           "atomic-fetch",
                           "atomic-set",
                           "atomic-swap",
                           "atomic-compare-swap",
                           "atomic-fetch-add",
                           "atomic-fetch-inc",
                           "atomic-fetch-and",
                           "atomic-fetch-or",
                           "atomic-fetch-xor",
                           "memcpy",
                           "transport-put",
                           "cacheline-pingpong",
                           "bare-atomic",
                           "verbs-write",
                           "verbs-write-latency"})
    EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(Choose, NamesAndWildcards) {
  EXPECT_EQ(chosen({"put"}), Names{"put"});
  EXPECT_EQ(chosen({"barrier", "put"}), (Names{"put", "barrier"})); // the registry's order
  EXPECT_EQ(chosen({"put", "put*latency", "put"}), (Names{"put", "put-latency"}));
  EXPECT_EQ(chosen({"?"}), (Names{"p", "g"}));
  EXPECT_EQ(chosen({"?et"}), Names{"get"});
  EXPECT_EQ(chosen({"*-pingpong"}).size(), 4u);
  EXPECT_EQ(chosen({"atomic-fetch*"}).size(), 6u);
  EXPECT_EQ(chosen({"*a*o*c*c*p*"}), Names{"atomic-compare-swap"});
  EXPECT_EQ(chosen({"put**"}), chosen({"put*"}));
  EXPECT_EQ(chosen({"all"}).size(), host_cases().size());
  EXPECT_EQ(chosen({"*"}).size(), host_cases().size());
  EXPECT_TRUE(chosen({}).empty());
}

TEST(Choose, CasesOfOtherInitiatorsAreNamed) {
  EXPECT_EQ(fix_for("st"), "pass --initiator gpu; shmemctl bench --list shows all cases");
  EXPECT_EQ(fix_for("alltoallv"),
            "pass --initiator stream or --initiator gpu; shmemctl bench --list shows all cases");
  EXPECT_EQ(fix_for("reduce-bf16"),
            "pass --initiator stream or --initiator gpu; shmemctl bench --list shows all cases");
  EXPECT_EQ(fix_for("atomic-add"), "pass --initiator gpu; shmemctl bench --list shows all cases");
  EXPECT_EQ(fix_for("wait-f*"), "pass --initiator gpu; shmemctl bench --list shows all cases");
  try {
    choose_cases(cases_of(Initiator::host, MemoryKind::gpu), {"g"});
    ADD_FAILURE() << "it was found";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("no case of --initiator host --memory gpu matches"),
              std::string::npos)
        << error.message();
    EXPECT_EQ(error.fix(),
              "pass --memory host or --initiator gpu; shmemctl bench --list shows all cases");
  }
}

TEST(Choose, UnknownNamesAreCorrected) {
  EXPECT_NE(fix_for("putt").find("did you mean put?"), std::string::npos);
  EXPECT_NE(fix_for("barier").find("did you mean barrier?"), std::string::npos);
  EXPECT_NE(fix_for("pingpong").find("put-pingpong or put-signal-pingpong or signal-pingpong"),
            std::string::npos);
  EXPECT_NE(fix_for("atomic-ad").find("atomic-"), std::string::npos);
  for (const char* far : {"zzzzzzzz", "", "x*y", "PUT ME", "-"})
    EXPECT_NE(fix_for(far).find("bench --list"), std::string::npos);
}
