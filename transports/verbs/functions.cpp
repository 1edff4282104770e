#include "transports/verbs/functions.h"

namespace shmemctl::verbs {

namespace {

/// Looks symbols up, and remembers the first that is missing.
class Lookup {
public:
  explicit Lookup(const DynamicLibrary& library) : library_(library) {}

  template <class Function>
  void require(Function*& function, const char* symbol) {
    function = library_.function<Function>(symbol);
    if (!function && missing_.empty())
      missing_ = symbol;
  }
  const std::string& missing() const { return missing_; }

private:
  const DynamicLibrary& library_;
  std::string missing_;
};

} // namespace

std::shared_ptr<const Functions> load_functions(const std::string& file, std::string& why) {
  // Providers are plugins that register themselves: the library is not made to be unloaded.
  std::optional<DynamicLibrary> library =
      DynamicLibrary::open({file}, &why, DynamicLibrary::Needs{.stay_loaded = true});
  if (!library)
    return nullptr;
  auto table = std::make_shared<Functions>();
  Lookup lookup(*library);
  lookup.require(table->get_device_list, "ibv_get_device_list");
  lookup.require(table->free_device_list, "ibv_free_device_list");
  lookup.require(table->open_device, "ibv_open_device");
  lookup.require(table->close_device, "ibv_close_device");
  lookup.require(table->query_device, "ibv_query_device");
  lookup.require(table->query_port, "ibv_query_port");
  lookup.require(table->query_gid_table, "_ibv_query_gid_table");
  lookup.require(table->alloc_pd, "ibv_alloc_pd");
  lookup.require(table->dealloc_pd, "ibv_dealloc_pd");
  lookup.require(table->reg_mr, "ibv_reg_mr");
  lookup.require(table->dereg_mr, "ibv_dereg_mr");
  lookup.require(table->create_cq, "ibv_create_cq");
  lookup.require(table->destroy_cq, "ibv_destroy_cq");
  lookup.require(table->create_comp_channel, "ibv_create_comp_channel");
  lookup.require(table->destroy_comp_channel, "ibv_destroy_comp_channel");
  lookup.require(table->get_cq_event, "ibv_get_cq_event");
  lookup.require(table->ack_cq_events, "ibv_ack_cq_events");
  lookup.require(table->create_srq, "ibv_create_srq");
  lookup.require(table->destroy_srq, "ibv_destroy_srq");
  lookup.require(table->create_qp, "ibv_create_qp");
  lookup.require(table->modify_qp, "ibv_modify_qp");
  lookup.require(table->destroy_qp, "ibv_destroy_qp");
  lookup.require(table->get_async_event, "ibv_get_async_event");
  lookup.require(table->ack_async_event, "ibv_ack_async_event");
  lookup.require(table->wc_status_str, "ibv_wc_status_str");
  if (!lookup.missing().empty()) {
    why = library->file() + " has no " + lookup.missing() + ": it is older than rdma-core 32";
    return nullptr;
  }
  table->reg_dmabuf_mr =
      library->function<std::remove_pointer_t<decltype(table->reg_dmabuf_mr)>>("ibv_reg_dmabuf_mr");
  table->library = std::move(library);
  return table;
}

} // namespace shmemctl::verbs
