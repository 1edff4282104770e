// Which provider and which rules are used, and the errors if there is none.
#if __has_include(<rdma/fabric.h>)

#include <arpa/inet.h>
#include <cstring>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "src/base/job_health.h"
#include "src/base/options.h"
#include "tests/support/expect_error.h"
#include "tests/support/set_variable.h"
#include "transports/libfabric/devices.h"
#include "transports/libfabric/endpoint.h"
#include "transports/libfabric/libfabric.h"
#include "transports/libfabric/memory.h"
#include "transports/libfabric/probe.h"
#include "transports/libfabric/profile.h"

namespace shmemctl::fabric {
namespace {

std::string names_of(const std::vector<ProviderChoice>& choices) {
  std::string names;
  for (const ProviderChoice& choice : choices)
    names += choice.provider + "/" + choice.profile.name + " ";
  return names;
}

TEST(FabricProfile, ChoicesByName) {
  EXPECT_EQ(names_of(provider_choices("", "")),
            "cxi/cxi efa/efa verbs;ofi_rxm/verbs tcp;ofi_rxm/tcp tcp/tcp ");
  EXPECT_EQ(names_of(provider_choices("tcp", "")), "tcp;ofi_rxm/tcp tcp/tcp ");
  EXPECT_EQ(names_of(provider_choices("tcp", "efa")), "tcp;ofi_rxm/efa tcp/efa ");
  EXPECT_EQ(names_of(provider_choices("efa", "")), "efa/efa ");
  EXPECT_EQ(names_of(provider_choices("sockets", "")), "sockets/generic ");
  EXPECT_EQ(names_of(provider_choices("sockets", "cxi")), "sockets/cxi ");
}

TEST(FabricProfile, OtherRulesDoNotChangeTheProvider) {
  EXPECT_TRUE(provider_choices("tcp", "efa").front().profile.listens_on_tcp);
  EXPECT_FALSE(provider_choices("efa", "tcp").front().profile.listens_on_tcp);
  EXPECT_TRUE(provider_choices("tcp", "efa").front().profile.words_may_tear);
  EXPECT_FALSE(provider_choices("efa", "").front().profile.words_may_tear);
}

TEST(FabricProfile, RulesOfEfa) {
  const Profile& efa = *find_profile("efa");
  EXPECT_FALSE(efa.selective_completion);
  EXPECT_TRUE(efa.staged_atomics);
  EXPECT_TRUE(efa.counted_signals);
  EXPECT_FALSE(efa.in_order);
  EXPECT_TRUE(efa.needs_gdrcopy);
  EXPECT_EQ(efa.cq_format, FI_CQ_FORMAT_DATA);
  EXPECT_EQ(efa.mr_mode & FI_MR_LOCAL, FI_MR_LOCAL);
}

TEST(FabricProfile, NicsThatMayReachGpus) {
  for (const Profile& profile : profiles())
    EXPECT_EQ(profile.may_reach_gpus, profile.name != "tcp") << profile.name;
  EXPECT_FALSE(provider_choices("tcp", "efa").front().profile.may_reach_gpus);
  EXPECT_TRUE(provider_choices("efa", "tcp").front().profile.may_reach_gpus);
  EXPECT_FALSE(provider_choices("sockets", "").front().profile.may_reach_gpus);
}

class GpuSeven final : public DeviceMemory {
public:
  std::string text() const override { return "GPU 7"; }
  int ordinal() const override { return 7; }
  std::string why_no_dma_buf() const override { return "it makes none"; }
  std::optional<DmaBuf> export_dma_buf(std::uintptr_t, std::size_t, std::string&) const override {
    return std::nullopt;
  }
  std::string why_unordered() const override { return {}; }
  bool needs_flush() const override { return true; }
  void flush() const override {}
};

TEST(FabricRegistration, NamesWhoseMemoryItIs) {
  std::byte memory[64];
  const iovec area{memory, sizeof memory};
  const fi_mr_attr host = registration_of(area, nullptr);
  EXPECT_EQ(host.iface, FI_HMEM_SYSTEM);
  EXPECT_EQ(host.mr_iov->iov_base, memory);
  const GpuSeven gpu;
  const fi_mr_attr device = registration_of(area, &gpu);
  EXPECT_EQ(device.iface, FI_HMEM_CUDA);
  EXPECT_EQ(device.device.cuda, 7);
  EXPECT_EQ(device.access, host.access);
}

/// A region that was removed is not found any more.
TEST(FabricMemory, ForgetsARegionOfAGpu) {
  MemoryMap map(2);
  map.use({});
  std::byte memory[64];
  map.devices().add(3, std::make_shared<GpuSeven>());
  const std::string key = map.set_region({3, memory, sizeof memory, {}});
  EXPECT_TRUE(map.devices().hold(memory + 63));
  EXPECT_FALSE(map.devices().hold(memory + 64));
  map.set_keys(3, {key, key});
  map.drop_device_region(3);
  EXPECT_FALSE(map.devices().hold(memory));
  EXPECT_FALSE(map.devices().has(3));
  EXPECT_EQ(map.region(3).base, nullptr);
  test::expect_error(ExitCode::unavailable, {"PE 1", "region 3"}, [&] {
    map.remote(0, {1, 3, 0}, 8);
  });
}

TEST(FabricMemory, AMalformedKeyIsOfAnotherVersion) {
  MemoryMap map(2);
  map.use({});
  try {
    map.set_keys(0, {"", "no key"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "memory of PE 1: cannot access: it sent a malformed key");
    EXPECT_EQ(error.fix(), "run the same version of shmemctl on all hosts");
  }
}

TEST(FabricProfile, RequiredVariables) {
  const Profile& efa = *find_profile("efa");
  {
    const test::SetVariable wrong("FI_EFA_USE_DEVICE_RDMA", "0");
    EXPECT_EQ(prepare_environment(efa, 2), "FI_EFA_USE_DEVICE_RDMA is \"0\" and has to be 1");
  }
  const test::SetVariable right("FI_EFA_USE_DEVICE_RDMA", "1");
  EXPECT_EQ(prepare_environment(efa, 2), "");
}

TEST(FabricProfile, SetsWhatIsNotSetAndLeavesTheRest) {
  Profile profile;
  profile.variables = {{"SHMEMCTL_TEST_A", "1"}, {"SHMEMCTL_TEST_B", "n_pes"}};
  const test::SetVariable own("SHMEMCTL_TEST_A", "7");
  const test::SetVariable restored("SHMEMCTL_TEST_B", "");
  ::unsetenv("SHMEMCTL_TEST_B");
  EXPECT_EQ(prepare_environment(profile, 100), "");
  EXPECT_STREQ(std::getenv("SHMEMCTL_TEST_A"), "7");
  EXPECT_STREQ(std::getenv("SHMEMCTL_TEST_B"), "100");
}

/// ofi_rxm's default would be 90 MiB of each PE; another value of the user's is no fault.
TEST(FabricProfile, BuffersThatNoOperationUsesAreSmall) {
  for (const char* name : {"tcp", "verbs"}) {
    const test::SetVariable restored("FI_OFI_RXM_BUFFER_SIZE", "");
    ::unsetenv("FI_OFI_RXM_BUFFER_SIZE");
    EXPECT_EQ(prepare_environment(*find_profile(name), 2), "");
    EXPECT_STREQ(std::getenv("FI_OFI_RXM_BUFFER_SIZE"), "1024") << name;
    const auto needs = needs_of(name);
    ASSERT_TRUE(needs);
    for (const ProviderVariable& variable : needs->variables)
      EXPECT_NE(variable.name, "FI_OFI_RXM_BUFFER_SIZE") << name;
  }
}

Unavailable problem_of(const ProviderRequest& request) {
  Provider found;
  Unavailable problem;
  EXPECT_FALSE(find_provider(request, found, problem));
  EXPECT_NE(problem.fix, "");
  return problem;
}

TEST(FabricProvider, MissingLibraryIsNamed) {
  EXPECT_NE(
      problem_of({"libnosuchfabric.so.9", "tcp", "", "", 1}).reason.find("libnosuchfabric.so.9"),
      std::string::npos);
  EXPECT_NE(problem_of({"libc.so.6", "tcp", "", "", 1}).reason.find("is not libfabric"),
            std::string::npos);
}

/// The tests from here on need libfabric itself.
class FabricHere : public testing::Test {
protected:
  void SetUp() override {
    std::string why;
    library_ = Library::open("libfabric.so.1", why);
    if (!library_)
      GTEST_SKIP() << why;
  }
  std::shared_ptr<const Library> library_;
};

using FabricProviderHere = FabricHere;

TEST_F(FabricProviderHere, UnknownProviderIsNamed) {
  EXPECT_NE(problem_of({"libfabric.so.1", "nosuch", "", "", 1}).reason.find("nosuch: "),
            std::string::npos);
}

TEST_F(FabricProviderHere, UnknownInterfaceIsNamedWithThoseThatAreThere) {
  const std::string reason = problem_of({"libfabric.so.1", "tcp", "", "nosuch0", 1}).reason;
  EXPECT_NE(reason.find("no device nosuch0, only "), std::string::npos) << reason;
  EXPECT_NE(reason.find("lo"), std::string::npos) << reason;
}

TEST_F(FabricProviderHere, WrongRequiredVariableIsNamed) {
  const test::SetVariable wrong("FI_EFA_USE_DEVICE_RDMA", "0");
  const Unavailable problem = problem_of({"libfabric.so.1", "tcp", "efa", "", 1});
  EXPECT_NE(problem.reason.find("FI_EFA_USE_DEVICE_RDMA is \"0\""), std::string::npos);
  EXPECT_NE(problem.fix.find("or unset it"), std::string::npos);
}

TEST_F(FabricProviderHere, TheNamedInterfaceIsTaken) {
  Provider found;
  Unavailable problem;
  ASSERT_TRUE(find_provider({"libfabric.so.1", "tcp", "", "lo", 1}, found, problem))
      << problem.reason;
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].name, "lo");
  EXPECT_TRUE(found.devices[0].loopback);
}

/// A list as returned by fi_getinfo().
Info list_of(const Library& library,
             const std::vector<std::tuple<std::string, std::string, std::string>>& entries) {
  Info first(nullptr, {&library});
  fi_info* last = nullptr;
  for (const auto& [provider, domain, address] : entries) {
    Info info = library.new_info();
    info->fabric_attr->prov_name = ::strdup(provider.c_str());
    info->domain_attr->name = ::strdup(domain.c_str());
    sockaddr_in6 six{};
    sockaddr_in four{};
    const bool is_six = ::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1;
    ::inet_pton(AF_INET, address.c_str(), &four.sin_addr);
    six.sin6_family = AF_INET6;
    four.sin_family = AF_INET;
    info->addr_format = is_six ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    info->src_addrlen = is_six ? sizeof six : sizeof four;
    info->src_addr = std::malloc(info->src_addrlen); // freed with the list
    std::memcpy(info->src_addr, is_six ? static_cast<void*>(&six) : &four, info->src_addrlen);
    fi_info* const raw = info.release();
    if (last)
      last->next = raw;
    else
      first.reset(raw);
    last = raw;
  }
  return first;
}

TEST_F(FabricProviderHere, DevicesOfAList) {
  const Info list = list_of(*library_, {{"tcp;ofi_rxm", "lo", "127.0.0.1"},
                                        {"net", "eth7", "10.0.0.7"},
                                        {"tcp;ofi_rxm", "eth1", "fe80::1"},
                                        {"tcp;ofi_rxm", "eth0", "10.0.0.1"},
                                        {"tcp;ofi_rxm", "eth0", "fd00::1"},
                                        {"tcp;ofi_rxm", "rdmap0s8-rdm", "fd00::2"}});
  const std::vector<Device> devices = devices_of(*library_, list.get(), "tcp;ofi_rxm");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].name, "eth0");
  EXPECT_EQ(devices[0].address_format, FI_SOCKADDR_IN) << "the provider's first";
  EXPECT_EQ(devices[1].name, "rdmap0s8") << "the NIC's name, without the kind of endpoint";
  EXPECT_EQ(devices[1].domain, "rdmap0s8-rdm");
  EXPECT_EQ(devices[2].name, "lo") << "behind those that reach other machines";
  EXPECT_TRUE(devices_of(*library_, list.get(), "efa").empty());
  EXPECT_TRUE(devices_of(*library_, nullptr, "tcp;ofi_rxm").empty());
}

TEST_F(FabricProviderHere, GpuMemoryIsAskedForWhereItMayBeReached) {
  const ProviderChoice efa = provider_choices("efa", "").front();
  const Info with = hints_for(*library_, efa, true), without = hints_for(*library_, efa, false);
  EXPECT_NE(with->caps & FI_HMEM, 0u);
  EXPECT_NE(with->domain_attr->mr_mode & FI_MR_HMEM, 0);
  EXPECT_EQ(without->caps & FI_HMEM, 0u);
  with->caps |= FI_HMEM; // as the provider would return it
  EXPECT_TRUE(promises_of(*with, efa.profile).gpu_memory);
  EXPECT_FALSE(promises_of(*without, efa.profile).gpu_memory);
  EXPECT_FALSE(promises_of(*with, *find_profile("tcp")).gpu_memory) << "it copies by the processor";
  // A provider without it is used as it is.
  Provider found;
  Unavailable problem;
  EXPECT_TRUE(find_provider({"libfabric.so.1", "tcp", "", "lo", 1, true}, found, problem))
      << problem.reason;
}

class FabricReach : public FabricHere {
protected:
  std::unique_ptr<Transport> make(const std::map<std::string, std::string>& values) {
    options_.push_back(std::make_unique<Options>(Environment{}, values));
    return make_libfabric_transport({0, 2, "here", options_.back().get(), &health_, 5});
  }
  /// From PE 0 with that transport to PE 1, which says `info`.
  static Reach reach(Transport& transport, const std::string& info,
                     std::uint64_t other_machine = 1) {
    return transport.reach({0, 1, 1, transport.local_info()}, {1, 2, other_machine, info});
  }

  JobHealth health_;
  std::vector<std::unique_ptr<Options>> options_;
};

TEST_F(FabricReach, EqualsReachEachOther) {
  const auto transport = make({{"LIBFABRIC_PROVIDER", "tcp"}});
  const Reach way = reach(*transport, transport->local_info());
  EXPECT_NE(way.capabilities, 0u) << way.reason;
  EXPECT_NE(way.reason.find("tcp"), std::string::npos);
}

TEST_F(FabricReach, ReasonsNameWhatIsMissing) {
  const auto transport = make({{"LIBFABRIC_PROVIDER", "tcp"}});
  const auto rules = make({{"LIBFABRIC_PROVIDER", "tcp"}, {"LIBFABRIC_PROFILE", "efa"}});
  const auto none = make({{"LIBFABRIC_LIBRARY", "libnosuchfabric.so.9"}});
  const Reach other_rules = reach(*transport, rules->local_info());
  EXPECT_EQ(other_rules.capabilities, 0u);
  EXPECT_NE(other_rules.reason.find("rules of tcp, that of PE 1"), std::string::npos)
      << other_rules.reason;
  const Reach there = reach(*transport, none->local_info());
  EXPECT_EQ(there.capabilities, 0u);
  EXPECT_NE(there.reason.find("on PE 1: libfabric cannot be opened"), std::string::npos);
  const Reach here = reach(*none, transport->local_info());
  EXPECT_EQ(here.capabilities, 0u);
  EXPECT_EQ(here.reason.find("libfabric cannot be opened"), 0u) << here.reason;
  EXPECT_EQ(reach(*transport, "gibberish").capabilities, 0u);
}

TEST_F(FabricReach, LoopbackStaysOnItsMachine) {
  const auto transport = make({{"LIBFABRIC_PROVIDER", "tcp"}, {"LIBFABRIC_INTERFACE", "lo"}});
  EXPECT_NE(reach(*transport, transport->local_info()).capabilities, 0u);
  const Reach far = reach(*transport, transport->local_info(), 2);
  EXPECT_EQ(far.capabilities, 0u);
  EXPECT_NE(far.reason.find("loopback"), std::string::npos);
}

TEST_F(FabricReach, NicsOfAnotherKindAreLeftAlone) {
  const auto transport = make({{"LIBFABRIC_PROVIDER", "tcp"}});
  EXPECT_NO_THROW(transport->use_nics({{"mlx5_0", 1}, {"lo", 1}}));
}

} // namespace
} // namespace shmemctl::fabric

#endif
