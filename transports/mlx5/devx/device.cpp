#include "transports/mlx5/devx/device.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>

#include "src/base/error.h"
#include "transports/mlx5/qp_layout.h"
#include "transports/verbs/queue_pair.h"

namespace shmemctl::mlx5 {

namespace {

constexpr const char* container_fix =
    "check dmesg; in a container allow /dev/infiniband, CAP_IPC_LOCK and ulimit -l unlimited; or "
    "set SHMEMCTL_MLX5_DEVICE=emulated or SHMEMCTL_TRANSPORT=ibrc";

/// MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED. Headers before rdma-core 45 lack it, and libraries before
/// that version refuse it.
constexpr std::uint32_t dedicated_page = std::uint32_t{1} << 31;

verbs::Device::Open with_devx(const DirectFunctions& direct) {
  return [&direct](ibv_device* device) {
    mlx5dv_context_attr attributes{};
    attributes.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    return direct.open_device(device, &attributes);
  };
}

} // namespace

DirectDevice::DirectDevice(std::shared_ptr<const verbs::Functions> verbs,
                           std::shared_ptr<const DirectFunctions> direct, ibv_device* device,
                           int port)
    : direct_(std::move(direct)), verbs_(std::move(verbs), device, with_devx(*direct_)) {
  port_.number = port;
  if (port < 1 || port > verbs_.port_count())
    fail("open", fmt::format("it has no such port, only 1 to {}", verbs_.port_count()),
         "choose an existing port with SHMEMCTL_HCA_LIST");
  port_ = verbs_.port(port);
}

void DirectDevice::fail(const std::string& step, const std::string& message,
                        const std::string& fix) const {
  throw Error(ExitCode::unavailable, "mlx5 device", step, message, fix,
              {{}, {}, verbs_.name(), port_.number});
}

void DirectDevice::fail_command(const char* step, int error_number, const Answer& answer) const {
  std::string message = std::strerror(error_number);
  if (const std::uint64_t status = answer.get(command::status); status != 0)
    message += fmt::format(" (firmware status {:#04x}, syndrome {:#010x})", status,
                           answer.get(command::syndrome));
  fail(step, message, container_fix);
}

CapsReply DirectDevice::caps(std::uint16_t group, const char* what) const {
  const CapsCommand command = caps_command(group);
  CapsReply answer;
  errno = 0;
  if (direct_->general_cmd(verbs_.context(), command.data(), command.size(), answer.data(),
                           answer.size()) != 0)
    fail(fmt::format("query its {} capabilities", what),
         fmt::format("{} (firmware status {:#04x})", std::strerror(errno),
                     answer.get(command::status)),
         container_fix);
  return answer;
}

DeviceLimits DirectDevice::limits() const {
  const CapsReply general = caps(command::caps::general_now, "general");
  CapsReply general_2, atomic;
  if (general.get(command::caps::has_general_2) != 0)
    general_2 = caps(command::caps::general_2_now, "HCA_CAP_2");
  if (general.get(command::caps::atomic) != 0)
    atomic = caps(command::caps::atomic_now, "atomic");
  return limits_of(general, general_2, atomic);
}

std::uint32_t DirectDevice::protection_domain_number() {
  mlx5dv_pd pd{};
  mlx5dv_obj object{};
  object.pd.in = verbs_.protection_domain();
  object.pd.out = &pd;
  if (const int result = direct_->init_obj(&object, MLX5DV_OBJ_PD); result != 0)
    fail("query the number of its protection domain", std::strerror(result), container_fix);
  return pd.pdn;
}

std::uint32_t DirectDevice::event_queue() const {
  std::uint32_t number = 0;
  if (const int result = direct_->query_eqn(verbs_.context(), 0, &number); result != 0)
    fail("query an event queue", std::strerror(result > 0 ? result : errno), container_fix);
  return number;
}

RegisteredQueue DirectDevice::register_queue(void* base, std::size_t size_bytes, int dmabuf) const {
  errno = 0;
  mlx5dv_devx_umem* memory = nullptr;
  if (dmabuf < 0) {
    memory = direct_->umem_reg(verbs_.context(), base, size_bytes, IBV_ACCESS_LOCAL_WRITE);
  } else if (!direct_->umem_reg_ex) {
    errno = EOPNOTSUPP;
  } else {
    mlx5dv_devx_umem_in request{};
    request.size = size_bytes;
    request.access = IBV_ACCESS_LOCAL_WRITE;
    request.pgsz_bitmap = ~std::uint64_t{QpLayout::device_page_bytes - 1};
    request.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
    request.dmabuf_fd = dmabuf;
    memory = direct_->umem_reg_ex(verbs_.context(), &request);
  }
  // What libmlx5 answers to a request whose fields it does not know.
  if (!memory && dmabuf >= 0 && errno == EOPNOTSUPP)
    fail("register a QP in GPU memory",
         "libmlx5 (rdma-core before 44) or the device's driver (Linux before 6.0) takes no dma-buf",
         "update rdma-core and the driver, or load nvidia_peermem");
  if (!memory)
    fail("register the memory of a QP", std::strerror(errno), container_fix);
  return own_direct(memory, direct_->umem_dereg);
}

DirectDevice::Doorbell DirectDevice::doorbell_page() const {
  // In order of preference. With a non-cached page, an 8-byte store reaches the device at once;
  // with write combining, it must be flushed. All QPs of the context would share the plain
  // non-cached page and its register, so it comes last.
  struct Kind {
    std::uint32_t type;
    bool write_combining;
  };
  for (const Kind& kind : {Kind{dedicated_page, false},
                           {MLX5DV_UAR_ALLOC_TYPE_BF, true},
                           {MLX5DV_UAR_ALLOC_TYPE_NC, false}}) {
    errno = 0;
    if (auto* page = direct_->alloc_uar(verbs_.context(), kind.type))
      return {own_direct(page, direct_->free_uar), kind.write_combining};
  }
  fail("allocate a UAR", std::strerror(errno), container_fix);
}

FirmwareObject DirectDevice::create(const void* command, std::size_t size_bytes, Answer& answer,
                                    const char* step) const {
  errno = 0;
  mlx5dv_devx_obj* object =
      direct_->obj_create(verbs_.context(), command, size_bytes, answer.data(), answer.size());
  if (!object)
    fail_command(step, errno, answer);
  return own_direct(object, direct_->obj_destroy);
}

void DirectDevice::modify(const FirmwareObject& object, const QpCommand& command,
                          const char* step) const {
  Answer answer;
  errno = 0;
  if (const int result = direct_->obj_modify(object.get(), command.data(), command.size(),
                                             answer.data(), answer.size());
      result != 0)
    fail_command(step, result > 0 ? result : errno, answer);
}

std::array<std::uint8_t, 6> DirectDevice::resolve(const rc::QpPath& path) {
  ibv_ah_attr attributes = verbs::address_of(path);
  const std::string step = "find the Ethernet address of " + verbs::gid_text(path.peer_gid);
  const char* fix = "check that both ports are in one network (ping the address), or choose "
                    "another GID: SHMEMCTL_IB_GID_INDEX, SHMEMCTL_IB_ADDR_RANGE";
  errno = 0;
  const AddressHandle handle =
      own_direct(direct_->create_ah(verbs_.protection_domain(), &attributes), direct_->destroy_ah);
  if (!handle)
    fail(step, std::strerror(errno), fix);
  mlx5dv_ah address{};
  mlx5dv_obj object{};
  object.ah.in = handle.get();
  object.ah.out = &address;
  if (const int result = direct_->init_obj(&object, MLX5DV_OBJ_AH); result != 0)
    fail(step, std::strerror(result), fix);
  std::array<std::uint8_t, 6> mac{};
  std::memcpy(mac.data(), address.av->rmac, mac.size());
  return mac;
}

} // namespace shmemctl::mlx5
