#include "transports/verbs/functions.h"

namespace shmemctl::verbs {

std::shared_ptr<const Functions> load_functions(const std::string& file, std::string& why) {
  // Providers are plugins that register themselves, so the library must not be unloaded.
  std::optional<DynamicLibrary> library =
      DynamicLibrary::open({file}, &why, DynamicLibrary::Needs{.stay_loaded = true});
  if (!library)
    return nullptr;
  auto table = std::make_shared<Functions>();
  SymbolLookup lookup;
  lookup.require(*library, table->get_device_list, "ibv_get_device_list");
  lookup.require(*library, table->free_device_list, "ibv_free_device_list");
  lookup.require(*library, table->open_device, "ibv_open_device");
  lookup.require(*library, table->close_device, "ibv_close_device");
  lookup.require(*library, table->query_device, "ibv_query_device");
  lookup.require(*library, table->query_port, "ibv_query_port");
  lookup.require(*library, table->query_gid_table, "_ibv_query_gid_table");
  lookup.require(*library, table->alloc_pd, "ibv_alloc_pd");
  lookup.require(*library, table->dealloc_pd, "ibv_dealloc_pd");
  lookup.require(*library, table->reg_mr, "ibv_reg_mr");
  lookup.require(*library, table->dereg_mr, "ibv_dereg_mr");
  lookup.require(*library, table->create_cq, "ibv_create_cq");
  lookup.require(*library, table->destroy_cq, "ibv_destroy_cq");
  lookup.require(*library, table->create_comp_channel, "ibv_create_comp_channel");
  lookup.require(*library, table->destroy_comp_channel, "ibv_destroy_comp_channel");
  lookup.require(*library, table->get_cq_event, "ibv_get_cq_event");
  lookup.require(*library, table->ack_cq_events, "ibv_ack_cq_events");
  lookup.require(*library, table->create_srq, "ibv_create_srq");
  lookup.require(*library, table->destroy_srq, "ibv_destroy_srq");
  lookup.require(*library, table->create_qp, "ibv_create_qp");
  lookup.require(*library, table->modify_qp, "ibv_modify_qp");
  lookup.require(*library, table->destroy_qp, "ibv_destroy_qp");
  lookup.require(*library, table->get_async_event, "ibv_get_async_event");
  lookup.require(*library, table->ack_async_event, "ibv_ack_async_event");
  lookup.require(*library, table->wc_status_str, "ibv_wc_status_str");
  if (!lookup.missing().empty()) {
    why = lookup.missing() + ": it is older than rdma-core 32";
    return nullptr;
  }
  table->reg_dmabuf_mr =
      library->function<std::remove_pointer_t<decltype(table->reg_dmabuf_mr)>>("ibv_reg_dmabuf_mr");
  table->create_ah =
      library->function<std::remove_pointer_t<decltype(table->create_ah)>>("ibv_create_ah");
  table->destroy_ah =
      library->function<std::remove_pointer_t<decltype(table->destroy_ah)>>("ibv_destroy_ah");
  table->library = std::move(library);
  return table;
}

} // namespace shmemctl::verbs
