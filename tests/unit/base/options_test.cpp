#include "src/base/options.h"

#include <gtest/gtest.h>
#include <set>

#include "src/base/describe_env.h"
#include "src/base/error.h"

namespace shmemctl {

TEST(Options, CommandLineWinsOverOwnVariableOverNvshmemOverConfig) {
  const Environment both = {{"SHMEMCTL_HCA_LIST", "own"}, {"NVSHMEM_HCA_LIST", "theirs"}};
  EXPECT_EQ(Options(both, {{"HCA_LIST", "flag"}}).text("HCA_LIST"), "flag");
  EXPECT_EQ(Options(both).text("HCA_LIST"), "own");
  EXPECT_EQ(Options(Environment{{"NVSHMEM_HCA_LIST", "theirs"}}, {}, {{"HCA_LIST", "file"}})
                .text("HCA_LIST"),
            "theirs");
  const Options from_file({}, {}, {{"HCA_LIST", "file"}});
  EXPECT_EQ(from_file.text("HCA_LIST"), "file");
  EXPECT_EQ(from_file.value("HCA_LIST").origin, OptionOrigin::config_file);
}

TEST(Options, NvshmemNamesAreReadOnlyWhereNvshmemHasThem) {
  EXPECT_EQ(Options(Environment{{"NVSHMEM_TIMEOUT", "5"}}).text("TIMEOUT"), "60");
}

TEST(Options, IntegersOfNvshmemAboveTheMaximumCountAsTheMaximum) {
  const auto of = [](const char* prefix, const std::string& text) {
    const Options options(Environment{{std::string(prefix) + "IBGDA_NUM_RC_PER_PE", text}});
    return options.value("IBGDA_NUM_RC_PER_PE");
  };
  EXPECT_EQ(of("NVSHMEM_", "128").text, "64"); // what DeepEP V1 sets
  EXPECT_EQ(of("NVSHMEM_", "128").problem, "");
  EXPECT_EQ(of("NVSHMEM_", "16").text, "16");
  EXPECT_NE(of("NVSHMEM_", "0").problem, "");
  EXPECT_NE(of("NVSHMEM_", "many").problem, "");
  EXPECT_EQ(of("SHMEMCTL_", "128").text, "128");
  EXPECT_NE(of("SHMEMCTL_", "128").problem, "");
}

TEST(Options, NvshmemBooleansFollowNvshmemsRule) {
  auto read = [](const std::string& text) {
    return Options(Environment{{"NVSHMEM_ENABLE_NIC_PE_MAPPING", text}})
        .boolean("ENABLE_NIC_PE_MAPPING");
  };
  for (const char* text : {"0", "n", "No", "f", "False", "0x1"})
    EXPECT_FALSE(read(text)) << text;
  for (const char* text : {"1", "", "off", "yes", "true", " 0"})
    EXPECT_TRUE(read(text)) << text;
}

TEST(Options, OwnBooleansAreStrict) {
  EXPECT_TRUE(Options(Environment{{"SHMEMCTL_ENABLE_NIC_PE_MAPPING", "on"}})
                  .boolean("ENABLE_NIC_PE_MAPPING"));
  EXPECT_FALSE(Options(Environment{{"SHMEMCTL_ENABLE_NIC_PE_MAPPING", "off"}})
                   .boolean("ENABLE_NIC_PE_MAPPING"));
  EXPECT_NE(Options(Environment{{"SHMEMCTL_ENABLE_NIC_PE_MAPPING", "perhaps"}})
                .value("ENABLE_NIC_PE_MAPPING")
                .problem,
            "");
}

TEST(Options, InvalidValuesAreNamedWithTheirLegalOnes) {
  const Options options(Environment{{"SHMEMCTL_TIMEOUT", "-3"}, {"SHMEMCTL_POLICY", "best"}});
  EXPECT_EQ(options.value("TIMEOUT").problem, "not a number of at least 1 and at most 86400");
  EXPECT_EQ(options.value("POLICY").problem, "not one of nvshmem, nccl, optimal");
  try {
    options.require_valid({"COLOR", "TIMEOUT"});
    FAIL() << "an invalid TIMEOUT was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("SHMEMCTL_TIMEOUT=-3"), std::string::npos);
  }
}

TEST(Options, TheTableIsWellFormed) {
  std::string previous;
  for (const OptionSpec& spec : option_table()) {
    EXPECT_LT(previous, spec.name) << "sorted, no duplicates";
    previous = spec.name;
    EXPECT_FALSE(spec.doc.empty()) << spec.name;
    EXPECT_NE(option_value_name(spec), "TEXT") << spec.name << ": its value has no name";
    if (!spec.default_value.empty()) {
      EXPECT_EQ(option_problem(spec, spec.default_value, OptionOrigin::default_value), "")
          << spec.name;
    }
    EXPECT_EQ(spec.type == OptionType::choice, !spec.choices.empty()) << spec.name;
  }
}

namespace {
bool has(const Findings& findings, const std::string& id, const std::string& subject) {
  for (const Finding& finding : findings)
    if (finding.id == id && finding.subject == subject)
      return true;
  return false;
}
} // namespace

TEST(DescribeEnv, UnknownOwnNamesGetTheNearestKnownOne) {
  const Environment environment = {{"SHMEMCTL_HCA_LITS", "mlx5_0"}, {"SHMEMCTL_ZZZZZZZ", "1"}};
  const EnvDescription env = describe_environment(Options(environment), environment);
  ASSERT_TRUE(has(env.findings, "env-unknown", "SHMEMCTL_HCA_LITS"));
  ASSERT_TRUE(has(env.findings, "env-unknown", "SHMEMCTL_ZZZZZZZ"));
  for (const Finding& finding : env.findings) {
    if (finding.subject == "SHMEMCTL_HCA_LITS") {
      EXPECT_EQ(finding.fix, "did you mean SHMEMCTL_HCA_LIST? shmemctl env lists every option");
    }
  }
}

TEST(DescribeEnv, OnlyNamesOfNobodyAreUnknown) {
  const Findings findings = unknown_variables({{"PATH", "/bin"},
                                               {"SHMEMCTL_POLICY", "nccl"},
                                               {"SHMEMCTL_LOCAL_RANK", "0"},
                                               {"SHMEMCTL_DURING_ID", "1"},
                                               {"SHMEMCTL_POLCY", "nccl"}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].subject, "SHMEMCTL_POLCY");
}

TEST(Options, AConfigurationFileIsNamed) {
  const Options options({}, {}, {{"POLICY", "ncl"}, {"POLICY@", "/etc/x.conf"}, {"WORLD", "node"}});
  EXPECT_EQ(options.value("POLICY").origin_name, "/etc/x.conf");
  EXPECT_EQ(options.value("WORLD").origin_name, "--config");
  try {
    options.require_valid({"POLICY"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "POLICY=ncl: not one of nvshmem, nccl, optimal, in /etc/x.conf");
  }
  const EnvDescription env = describe_environment(options, {});
  ASSERT_TRUE(has(env.findings, "env-invalid", "/etc/x.conf"));
}

TEST(DescribeEnv, ForeignVariablesSayWhatTheyDoHere) {
  const Environment environment = {{"NVSHMEM_HCA_LIST", "mlx5_0"},
                                   {"NVSHMEM_HCA_PREFIX", "mlx"},
                                   {"SHMEMCTL_HCA_PREFIX", "ibp"},
                                   {"NCCL_IB_HCA", "mlx5"},
                                   {"NVSHMEM_DISABLE_IB", "1"},
                                   {"UCX_SOMETHING", "1"},
                                   {"HOME", "/"}};
  const EnvDescription env = describe_environment(Options(environment), environment);
  std::map<std::string, std::string> meanings;
  for (const ForeignVariable& variable : env.foreign)
    meanings[variable.name] = variable.meaning;
  EXPECT_EQ(meanings["NVSHMEM_HCA_LIST"], "read as SHMEMCTL_HCA_LIST");
  EXPECT_EQ(meanings["NVSHMEM_HCA_PREFIX"], "overridden by SHMEMCTL_HCA_PREFIX");
  EXPECT_EQ(meanings["UCX_SOMETHING"], "not read here");
  EXPECT_EQ(meanings.count("HOME"), 0U);
  EXPECT_TRUE(has(env.findings, "env-shadowed", "NVSHMEM_HCA_PREFIX"));
  EXPECT_TRUE(has(env.findings, "env-no-such-nvshmem-variable", "NVSHMEM_DISABLE_IB"));
}

TEST(DescribeEnv, NoVariableIsBothAnOptionAndForeign) {
  std::set<std::string> names;
  for (const OptionSpec& spec : option_table())
    if (spec.nvshmem_alias)
      names.insert("NVSHMEM_" + spec.name);
  for (const auto& [name, meaning] : foreign_variable_table())
    EXPECT_TRUE(names.insert(name).second) << name << ": " << meaning;
}

TEST(DescribeEnv, OffMeansOnForNvshmem) {
  const Environment environment = {{"NVSHMEM_IB_ENABLE_IBGDA", "off"}};
  EXPECT_TRUE(has(describe_environment(Options(environment), environment).findings,
                  "env-surprising-boolean", "NVSHMEM_IB_ENABLE_IBGDA"));
}

TEST(DescribeEnv, ARemoteTransportThatNvshmemDoesNotKnow) {
  Environment environment = {{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}};
  const EnvDescription alone = describe_environment(Options(environment), environment);
  EXPECT_TRUE(has(alone.findings, "remote-transport-unknown", "NVSHMEM_REMOTE_TRANSPORT"));
  EXPECT_TRUE(has_error(alone.findings));
  environment["NVSHMEM_IB_ENABLE_IBGDA"] = "true";
  const EnvDescription beside = describe_environment(Options(environment), environment);
  EXPECT_TRUE(has(beside.findings, "remote-transport-unknown", "NVSHMEM_REMOTE_TRANSPORT"));
  EXPECT_FALSE(has_error(beside.findings));
  // In the tool's own option the same value is simply not one of the choices.
  const Environment own = {{"SHMEMCTL_REMOTE_TRANSPORT", "ibgda"}};
  EXPECT_TRUE(has(describe_environment(Options(own), own).findings, "env-invalid",
                  "SHMEMCTL_REMOTE_TRANSPORT"));
}

TEST(RemoteTransport, IsComparedByEightCharactersWithoutCase) {
  EXPECT_EQ(parse_remote_transport("IBRC"), "ibrc");
  EXPECT_EQ(parse_remote_transport("Libfabri"), "libfabric");
  EXPECT_EQ(parse_remote_transport("libfabric-next"), "libfabric");
  EXPECT_EQ(parse_remote_transport("None"), "none");
  for (const char* unknown_word : {"ibrcc", "ibgda", "", "ib", "libfab", " ibrc", "auto"})
    EXPECT_EQ(parse_remote_transport(unknown_word), std::nullopt) << unknown_word;
}

TEST(Options, AChoiceIsReadInTheTablesSpelling) {
  for (const OptionSpec& spec : option_table()) {
    if (spec.type != OptionType::choice)
      continue;
    for (const std::string& choice : spec.choices) {
      std::string upper = choice;
      for (char& letter : upper)
        letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
      const Options options(Environment{{"SHMEMCTL_" + spec.name, upper}});
      EXPECT_EQ(options.value(spec.name).problem, "") << spec.name;
      EXPECT_EQ(options.text(spec.name), choice) << spec.name;
    }
  }
}

TEST(DescribeEnv, InvalidValuesAreErrors) {
  const Environment environment = {{"SHMEMCTL_PES_PER_NODE", "many"}};
  EXPECT_TRUE(has_error(describe_environment(Options(environment), environment).findings));
}

} // namespace shmemctl
