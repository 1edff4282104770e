// Tries whether address handles can be created, for `doctor`. Needs no header of libibverbs.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace shmemctl::verbs {

struct Functions;

/// One address of a port: an entry of its GID table.
struct PortAddress {
  std::string device;
  int port = 1;
  int gid_index = 0;
  bool by_lid = false; ///< InfiniBand: use the LID instead of the GID, unless the port needs a GRH
};

/// The result of creating an address handle to a port's address.
struct AddressOutcome {
  PortAddress address;
  std::string text;     ///< "10.0.0.1", "LID 7"; "" if no address handle was tried
  int error_number = 0; ///< errno of ibv_create_ah; 0 on success
  std::string untried;  ///< why no address handle was tried, in one clause; "" if one was
};

struct AddressOutcomes {
  std::string unusable; ///< why libibverbs cannot be used, in one clause; "" if it can
  std::vector<AddressOutcome> outcomes;
};

/// Creates an address handle from each port to the port's own address, and destroys it. IBGDA, DEVX
/// and UD queue pairs create such handles to the addresses of their peers. Nothing is sent to a
/// port, but if the kernel has to resolve an address over the network, the call takes seconds.
/// Errors are part of the result.
std::vector<AddressOutcome> try_address_handles(const std::shared_ptr<const Functions>& functions,
                                                const std::vector<PortAddress>& addresses);

/// The same; opens the library first.
/// @param library "libibverbs.so.1"
AddressOutcomes try_address_handles(const std::string& library,
                                    const std::vector<PortAddress>& addresses);

} // namespace shmemctl::verbs
