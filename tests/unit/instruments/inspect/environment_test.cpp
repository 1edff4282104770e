// Variables of a process against the libraries that it has loaded.
#include <gtest/gtest.h>

#include "src/instruments/inspect/environment.h"

namespace shmemctl::inspect {
namespace {

std::shared_ptr<const Library> knowing(const char* kind, const std::string& path,
                                       const std::vector<std::string>& names) {
  auto library = std::make_shared<Library>();
  library->kind = library_kind_of_id(kind);
  library->file.path = path;
  for (const std::string& name : names)
    library->names += '\x01' + name + '\0';
  return library;
}

Variable judged(const std::string& name, const Libraries& libraries) {
  return judge_environment({{name, "1"}}, libraries).at(0);
}

TEST(InspectEnvironment, NamesOfNvshmem) {
  const Libraries libraries = {knowing("nvshmem-host", "/opt/libnvshmem_host.so.3",
                                       {"DEBUG", "IB_TRAFFIC_CLASS", "nvshmem_x"})};
  EXPECT_EQ(judged("NVSHMEM_DEBUG", libraries).status, "known");
  const Variable ignored = judged("NVSHMEM_IB_TRAFIC_CLASS", libraries);
  EXPECT_EQ(ignored.status, "ignored");
  EXPECT_EQ(ignored.nearest, "NVSHMEM_IB_TRAFFIC_CLASS");
  EXPECT_EQ(ignored.library, "/opt/libnvshmem_host.so.3");
  // Its end is that of another name, but NVSHMEM puts no names together.
  EXPECT_EQ(judged("NVSHMEM_MY_DEBUG", libraries).status, "ignored");
  EXPECT_EQ(judged("NVSHMEM_HOME", libraries).status, "unchecked");
}

TEST(InspectEnvironment, NamesThatAreMergedWithLongerTexts) {
  // The linker keeps one text for "GID_INDEX" and "IB_GID_INDEX".
  const Libraries libraries = {
      knowing("nvshmem-host", "/opt/libnvshmem_host.so.3", {"X_IB_GID_INDEX"})};
  EXPECT_EQ(judged("NVSHMEM_IB_GID_INDEX", libraries).status, "known");
}

TEST(InspectEnvironment, NamesOfNccl) {
  Libraries libraries = {knowing("nccl", "/opt/libnccl.so.2", {"NCCL_IB_HCA", "NCCL_DEBUG"})};
  EXPECT_EQ(judged("NCCL_IB_HCA", libraries).status, "known");
  EXPECT_EQ(judged("NCCL_IB_HCAS", libraries).nearest, "NCCL_IB_HCA");
  EXPECT_EQ(judged("NCCL_BLOCKING_WAIT", libraries).status, "ignored");
  libraries.push_back(knowing("torch", "/opt/libtorch_cuda.so", {}));
  EXPECT_EQ(judged("NCCL_BLOCKING_WAIT", libraries).status, "unchecked");
  // An extension that reads a variable of the same prefix.
  libraries.push_back(knowing("deepep", "/opt/deep_ep.so", {"NCCL_GIN_MINE"}));
  EXPECT_EQ(judged("NCCL_GIN_MINE", libraries).status, "known");
}

TEST(InspectEnvironment, NamesFromTables) {
  const Libraries libraries = {knowing("ucx", "/opt/libuct_ib.so.0", {"GID_INDEX", "TLS", "SL"}),
                               knowing("libfabric", "/opt/libfabric.so.1", {"iface", "provider"})};
  auto sentence = std::make_shared<Library>(*libraries[1]);
  sentence->names += std::string("provide") + '\0'; // "... that they provide"
  for (const char* name :
       {"UCX_TLS", "UCX_IB_GID_INDEX", "UCX_RC_MLX5_SL", "FI_PROVIDER", "FI_TCP_IFACE"})
    EXPECT_EQ(judged(name, libraries).status, "known") << name;
  const Variable ucx = judged("UCX_IB_GID_INDX", libraries);
  EXPECT_EQ(ucx.status, "ignored");
  EXPECT_EQ(ucx.nearest, "UCX_IB_GID_INDEX");
  EXPECT_EQ(judged("FI_PROVIDR", {sentence}).nearest, "FI_PROVIDER");
}

TEST(InspectEnvironment, ALastWordDoesNotMakeAName) {
  const Libraries libraries = {
      knowing("ucx", "/opt/libuct.so.0", {"DEVICE", "SL", "IB_", "LEN", "GID_INDEX"}),
      knowing("ucx", "/opt/libucp.so.0", {"NET_DEVICES", "TX_LEN"})};
  const Variable missed = judged("UCX_NET_DEVICE", libraries);
  EXPECT_EQ(missed.status, "ignored");
  EXPECT_EQ(missed.nearest, "UCX_NET_DEVICES");
  for (const char* name : {"UCX_NET_DEVICES", "UCX_IB_SL", "UCX_RC_TX_LEN", "UCX_IB_GID_INDEX"})
    EXPECT_EQ(judged(name, libraries).status, "known") << name;
}

TEST(InspectEnvironment, NothingIsSaidWithoutALibrary) {
  for (const char* name : {"NVSHMEM_NONSENSE", "UCX_NONSENSE", "OMPI_MCA_pml"})
    EXPECT_EQ(judged(name, {}).status, "unchecked") << name;
  EXPECT_TRUE(judge_environment({{"PATH", "/bin"}, {"MY_NCCL_X", "1"}}, {}).empty());
}

TEST(InspectEnvironment, Findings) {
  const Libraries libraries = {
      knowing("nccl", "/opt/libnccl.so.2",
              {"NCCL_IB_TIMEOUT", "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_DEBUG", "NCCL_IB_SL"})};
  const auto findings = [&libraries](const std::map<std::string, std::string>& environment) {
    return environment_findings(judge_environment(environment, libraries));
  };
  EXPECT_TRUE(findings({{"NCCL_IB_TIMEOUT", "22"},
                        {"NCCL_DEBUG", "INFO"},
                        {"NCCL_IB_HCA", "mlx5"},
                        {"NCCL_IB_DISABLE", "0"},
                        {"NCCL_IB_SL", "-1"}})
                  .empty());
  const Findings range = findings({{"NCCL_IB_TIMEOUT", "32"}, {"NCCL_DEBUG", "LOUD"}});
  ASSERT_EQ(range.size(), 2U);
  EXPECT_EQ(range[0].id, "env-out-of-range");
  EXPECT_NE(range[0].fix.find("one of"), std::string::npos);
  EXPECT_EQ(range[1].fix, "set NCCL_IB_TIMEOUT to a number from 0 to 31");
  const Findings both = findings({{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5_0"}});
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].id, "env-contradiction");
  const Findings ignored = findings({{"NCCL_IB_TIMEOUTS", "1"}});
  ASSERT_EQ(ignored.size(), 1U);
  EXPECT_EQ(ignored[0].id, "env-ignored");
  EXPECT_EQ(ignored[0].message,
            "NCCL_IB_TIMEOUTS=1 has no effect: no library that the process has loaded reads this "
            "variable; /opt/libnccl.so.2 was searched for its name");
  EXPECT_NE(ignored[0].fix.find("did you mean NCCL_IB_TIMEOUT?"), std::string::npos);
}

} // namespace
} // namespace shmemctl::inspect
