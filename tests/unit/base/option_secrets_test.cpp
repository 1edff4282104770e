// Which options and variables are secrets, and that they are removed from texts.
#include "src/base/options.h"

#include <gtest/gtest.h>

#include "src/base/describe_env.h"
#include "src/base/error.h"
#include "src/base/recorded_variables.h"
#include "src/base/secret_filter.h"
#include "src/base/secure_execution.h"
#include "src/base/text.h"

namespace shmemctl {
namespace {

TEST(OptionSecrets, ARowWhoseNameSaysSoIsOne) {
  for (const OptionSpec& spec : option_table()) {
    const bool says_so = spec.name.find("SECRET") != std::string::npos ||
                         spec.name.find("PASSWORD") != std::string::npos ||
                         ends_with(spec.name, "_TOKEN") || ends_with(spec.name, "_KEY");
    if (says_so && !ends_with(spec.name, "_FILE")) {
      EXPECT_TRUE(is_secret_option(spec.name)) << spec.name;
    }
    if (is_secret_option(spec.name)) {
      EXPECT_EQ(spec.type, OptionType::text) << "a message of another type would show it";
      EXPECT_TRUE(is_secret_variable("SHMEMCTL_" + spec.name));
      EXPECT_TRUE(is_secret_variable("NVSHMEM_" + spec.name));
    }
  }
  EXPECT_TRUE(is_secret_option("BOOTSTRAP_UID")) << "it holds one";
  EXPECT_TRUE(is_secret_option("BOOTSTRAP_UID_SESSION_ID"));
}

TEST(OptionSecrets, VariablesOfOthers) {
  for (const char* name :
       {"SHMEMCTL_LOCAL_ID", "MY_SECRET", "db_password", "HF_TOKEN", "AWS_KEY", "TOKEN", "apikey"})
    EXPECT_TRUE(is_secret_variable(name)) << name;
  for (const char* name : {"SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE", "NVSHMEM_HCA_LIST", "MAX_TOKENS",
                           "UCX_NET_DEVICES", "KEYBOARD", ""})
    EXPECT_FALSE(is_secret_variable(name)) << name;
  EXPECT_EQ(shown_value("MY_SECRET", "x"), secret_stand_in);
  EXPECT_EQ(shown_value("MY_SECRET", ""), "");
  EXPECT_EQ(shown_value("HCA_LIST", "x"), "x");
}

TEST(OptionSecrets, CommandLinesLoseThem) {
  const SecretFilter filter(Options(Environment{{"SHMEMCTL_BOOTSTRAP_UID_SECRET", "hunter2"}}));
  EXPECT_EQ(filter(std::string("run --x hunter2!")), "run --x (set, not shown)!");
  const SecretFilter none((Options(Environment())));
  EXPECT_EQ(none(std::string("A_SECRET=a B=b")), "A_SECRET=(set, not shown) B=b");
  EXPECT_EQ(none(std::string("A_SECRET='a b' B=b")), "A_SECRET='(set, not shown)' B=b");
  EXPECT_EQ(none(std::string("A_SECRET=\"a b")), "A_SECRET=\"(set, not shown)");
  EXPECT_EQ(none(std::string("x;NVSHMEM_BOOTSTRAP_UID_SECRET=a;y")),
            "x;NVSHMEM_BOOTSTRAP_UID_SECRET=(set, not shown);y");
  EXPECT_EQ(none(std::string("A_SECRET= B==c =d= A_TOKEN=")), "A_SECRET= B==c =d= A_TOKEN=");
  EXPECT_EQ(none(std::vector<std::string>{"put[bytes=1M]>=3", "A_KEY=v"}),
            (std::vector<std::string>{"put[bytes=1M]>=3", "A_KEY=(set, not shown)"}));
}

SecretFilter no_options() {
  return SecretFilter(Options(Environment()));
}

using Words = std::vector<std::string>;

TEST(OptionSecrets, ArgumentsThatAreSecretsAreNotShown) {
  const std::string hidden = std::string("(") + secret_stand_in + ")";
  const SecretFilter filter = no_options();
  const auto words = [&](Words given) { return filter(std::move(given)); };
  EXPECT_EQ(words({"app", "--token", "abc", "x"}), (Words{"app", "--token", hidden, "x"}));
  EXPECT_EQ(words({"app", "--api-key", "abc", "-key", "abc"}),
            (Words{"app", "--api-key", hidden, "-key", hidden}));
  EXPECT_EQ(words({"app", "--apiKey", "abc"}), (Words{"app", "--apiKey", hidden}));
  EXPECT_EQ(words({"app", "--password=a b c", "-n", "2"}),
            (Words{"app", "--password=" + hidden, "-n", "2"}));
  EXPECT_EQ(words({"mpirun", "-x", "SECRET_KEY=a b", "-x", "NCCL_IB_HCA=mlx5_0"}),
            (Words{"mpirun", "-x", "SECRET_KEY=" + hidden, "-x", "NCCL_IB_HCA=mlx5_0"}));
  EXPECT_EQ(words({"mpiexec", "-genv", "HF_TOKEN", "abc", "-genv", "UCX_TLS", "tcp"}),
            (Words{"mpiexec", "-genv", "HF_TOKEN", hidden, "-genv", "UCX_TLS", "tcp"}));
  EXPECT_EQ(words({"srun", "--export=ALL,HF_TOKEN=abc"}),
            (Words{"srun", "--export=ALL,HF_TOKEN=" + hidden}));
  EXPECT_EQ(words({"app", "--token", "-x9f3-0a2b"}), (Words{"app", "--token", hidden}))
      << "base64 has a dash in one of its alphabets";
  EXPECT_EQ(words({"app", "--bootstrap-uid", "shmemctl-uid-1:5ec7"}),
            (Words{"app", "--bootstrap-uid", hidden}));
}

TEST(OptionSecrets, ArgumentsThatAreNoneStay) {
  const SecretFilter filter = no_options();
  for (const Words& words :
       {Words{"app", "--password", "--user", "me"}, Words{"app", "--token", "-n", "2"},
        Words{"app", "--no-token", "x"}, Words{"app", "--password-file", "x"},
        Words{"app", "--max-tokens=4096", "--max-tokens", "8"}, Words{"app", "--token"},
        Words{"mpirun", "-x", "HF_TOKEN", "-n", "2"}, Words{"app", "--keyboard=us", "-k", "x"},
        Words{"app", "--json", "a=b.json", "put[bytes=1M]>=3"}, Words{}, Words{""}})
    EXPECT_EQ(filter(words), words);
}

TEST(OptionSecrets, ScriptsOfAShellAreOneWord) {
  const SecretFilter filter = no_options();
  const std::string hidden = std::string("(") + secret_stand_in + ")";
  EXPECT_EQ(filter(Words{"sh", "-c", "A_TOKEN=abc app --password 'a b' --n 2; x --key=abc y"}),
            (Words{"sh", "-c",
                   "A_TOKEN=" + hidden + " app --password '" + hidden +
                       "' --n 2; x --key=" + hidden + " y"}));
  EXPECT_EQ(filter(std::string("run --token abc --n 2")), "run --token " + hidden + " --n 2");
  EXPECT_EQ(filter(std::string("env 'A_PASSWORD=a b' c")), "env 'A_PASSWORD=" + hidden + "' c");
}

TEST(OptionSecrets, UrlsLoseTheirPasswords) {
  const SecretFilter filter = no_options();
  const std::string hidden = std::string("(") + secret_stand_in + ")";
  EXPECT_EQ(filter(std::string("git clone https://me:a:b@c@host:80/x y")),
            "git clone https://me:" + hidden + "@host:80/x y");
  EXPECT_EQ(filter(Words{"--url=postgres://me:abc@host/db", "https://abc@host"}),
            (Words{"--url=postgres://me:" + hidden + "@host/db", "https://" + hidden + "@host"}));
  EXPECT_EQ(filter(std::string("http://host/?api_key=abc&n=2")),
            "http://host/?api_key=" + hidden + "&n=2");
  for (const char* same : {"ssh://me@host", "http://host:80/a@b", "http://", "tcp://a:1 b@c"})
    EXPECT_EQ(filter(std::string(same)), same);
}

TEST(OptionSecrets, FilteringTwiceChangesNothing) {
  const SecretFilter filter(Options(Environment{{"SHMEMCTL_BOOTSTRAP_UID_SECRET", "hunter2"}}));
  const Words given = {"app",
                       "--token",
                       "abc",
                       "--key=a b",
                       "A_SECRET=hunter2",
                       "-x",
                       "B_TOKEN=x",
                       "h://u:p@h",
                       "sh",
                       "-c",
                       "A_KEY=x y --token hunter2",
                       "--x=hunter2",
                       "https://hunter2@host"};
  const Words once = filter(given);
  EXPECT_EQ(filter(once), once);
  for (const std::string& word : once) {
    EXPECT_EQ(word.find("hunter2"), std::string::npos) << word;
    EXPECT_EQ(word.find("shown) not"), std::string::npos) << word;
    EXPECT_EQ(filter(word), word);
  }
}

TEST(OptionSecrets, ReportsRecordWhatExplainsARunAndNoSecret) {
  const Environment environment = {{"SHMEMCTL_BOOTSTRAP_UID_SECRET", "hunter2"},
                                   {"NVSHMEM_BOOTSTRAP_UID_SESSION_ID", "10.0.0.1:5000"},
                                   {"SHMEMCTL_HCA_LIST", "mlx5_0"},
                                   {"NVSHMEM_HCA_LIST", "mlx5_1"},
                                   {"NCCL_IB_HCA", "mlx5_0"},
                                   {"UCX_TLS", "tcp,hunter2"},
                                   {"FI_PROVIDER", "efa"},
                                   {"CUDA_VISIBLE_DEVICES", "0,1"},
                                   {"NCCL_SOME_FUTURE_VARIABLE", "x"},
                                   {"AWS_SESSION", "x"},
                                   {"HOME", "/root"}};
  EXPECT_EQ(
      recorded_environment(environment, Options(environment)),
      (std::map<std::string, std::string>{{"SHMEMCTL_BOOTSTRAP_UID_SECRET", secret_stand_in},
                                          {"SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", secret_stand_in},
                                          {"SHMEMCTL_HCA_LIST", "mlx5_0"},
                                          {"NCCL_IB_HCA", "mlx5_0"},
                                          {"UCX_TLS", std::string("tcp,(") + secret_stand_in + ")"},
                                          {"FI_PROVIDER", "efa"},
                                          {"CUDA_VISIBLE_DEVICES", "0,1"}}));
  for (const std::string& name : recorded_variables())
    EXPECT_FALSE(is_secret_variable(name)) << name;
}

TEST(OptionSecrets, EnvHidesThem) {
  const Environment environment = {{"SHMEMCTL_BOOTSTRAP_UID_SECRET", "hunter2"},
                                   {"NVSHMEM_BOOTSTRAP_UID_SECRET", "hunter2"},
                                   {"UCX_PASSWORD", "hunter2"}};
  const EnvDescription env = describe_environment(Options(environment), environment);
  std::string all;
  for (const OptionRow& row : env.options)
    all += row.value + "\n";
  for (const ForeignVariable& row : env.foreign)
    all += row.value + "\n";
  for (const Finding& finding : env.findings)
    all += finding.message + finding.fix + "\n";
  EXPECT_EQ(all.find("hunter2"), std::string::npos) << all;
  EXPECT_NE(all.find(secret_stand_in), std::string::npos);
}

TEST(SecureExecution, OptionsThatChooseCode) {
  for (const OptionSpec& spec : option_table()) {
    const bool loads = spec.doc.find("Shared library") != std::string::npos ||
                       spec.doc.find("Shared object") != std::string::npos;
    if (loads) {
      EXPECT_TRUE(chooses_code(spec.name)) << spec.name;
    }
  }
  EXPECT_TRUE(chooses_code("FAULT"));
  EXPECT_FALSE(chooses_code("HCA_LIST"));
  EXPECT_FALSE(is_secure_execution()) << "tests do not run with more rights than their caller";
}

TEST(SecureExecution, VariablesOfOtherLibraries) {
  const Environment environment = {{"UCX_MODULE_DIR", "/x"},
                                   {"OMPI_MCA_mca_base_component_path", "/x"},
                                   {"UCX_TLS", "tcp"},
                                   {"OMPI_COMM_WORLD_RANK", "1"}};
  EXPECT_EQ(foreign_code_variables(environment),
            (std::vector<std::string>{"OMPI_MCA_mca_base_component_path", "UCX_MODULE_DIR"}));
  EXPECT_TRUE(drop_code_variables(environment).empty()) << "not here";
}

} // namespace
} // namespace shmemctl
