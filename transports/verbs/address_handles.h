// For `doctor`: a trial of address handles. Needs no header of libibverbs.
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
  bool by_lid = false; ///< InfiniBand: its LID in place of the GID, unless it needs a GRH
};

/// What making an address handle to it ended with.
struct AddressOutcome {
  PortAddress address;
  std::string text;     ///< "10.0.0.1", "LID 7"; "" if it was not tried
  int error_number = 0; ///< errno of ibv_create_ah; 0 if it made one
  std::string untried;  ///< why it was not tried, in one clause; "" if it was
};

struct AddressOutcomes {
  std::string unusable; ///< why libibverbs cannot be used, in one clause; "" if it can
  std::vector<AddressOutcome> outcomes;
};

/// Creates an address handle from each port to its own address, as IBGDA, DEVX and UD queue pairs
/// create them to the addresses of others, and destroys it. It sends nothing, but takes seconds for
/// an address that the kernel looks for in the network. Never throws.
std::vector<AddressOutcome> try_address_handles(const std::shared_ptr<const Functions>& functions,
                                                const std::vector<PortAddress>& addresses);

/// The same with a library that is opened for it.
/// @param library "libibverbs.so.1"
AddressOutcomes try_address_handles(const std::string& library,
                                    const std::vector<PortAddress>& addresses);

} // namespace shmemctl::verbs
