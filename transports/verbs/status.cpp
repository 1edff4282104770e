#include "transports/verbs/status.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace shmemctl::verbs {

double retry_seconds(int timeout, int retry_count) {
  return 4.096e-6 * std::exp2(timeout) * (retry_count + 1);
}

std::string status_meaning(ibv_wc_status status, const FailureScene& scene) {
  if (scene.port_state != "ACTIVE")
    return "the port is " + scene.port_state;
  switch (status) {
  case IBV_WC_RETRY_EXC_ERR:
    return fmt::format("{} did not answer for {:.2g} s", scene.peer, scene.retry_seconds);
  case IBV_WC_RNR_RETRY_EXC_ERR:
    return scene.peer + " was never ready to receive";
  case IBV_WC_REM_ACCESS_ERR:
    return scene.peer + " refuses the address or its key";
  case IBV_WC_REM_INV_REQ_ERR:
    return scene.peer + " considers the request invalid";
  case IBV_WC_REM_OP_ERR:
    return "the device of " + scene.peer + " failed";
  case IBV_WC_LOC_PROT_ERR:
  case IBV_WC_LOC_ACCESS_ERR:
    return "the local memory is not registered for this access";
  case IBV_WC_LOC_QP_OP_ERR:
    return "the QP cannot execute the request";
  case IBV_WC_LOC_LEN_ERR:
    return "the message is longer than the port allows";
  case IBV_WC_WR_FLUSH_ERR:
    return "the connection had failed before";
  case IBV_WC_FATAL_ERR:
    return "the device failed";
  default:
    return "the connection is lost";
  }
}

std::string status_fix(ibv_wc_status status, const FailureScene& scene) {
  if (scene.port_state != "ACTIVE")
    return "bring the link up (ip link, ibstat), check cable and switch, and start again";
  switch (status) {
  case IBV_WC_RETRY_EXC_ERR:
    return fmt::format(
        "check that {} is still running and its port is up; if small transfers pass, "
        "some switch on the path has a smaller MTU than {} bytes: set SHMEMCTL_IB_MTU lower; "
        "a busy network needs a higher SHMEMCTL_IB_TIMEOUT",
        scene.peer, scene.mtu_bytes);
  case IBV_WC_REM_ACCESS_ERR:
  case IBV_WC_REM_INV_REQ_ERR:
    return "check that " + scene.peer +
           " still has that memory registered; if it has, report this as a bug in shmemctl, with "
           "the command line";
  case IBV_WC_REM_OP_ERR:
  case IBV_WC_RNR_RETRY_EXC_ERR:
    return "check the kernel log of the host of " + scene.peer + ": dmesg";
  case IBV_WC_LOC_PROT_ERR:
  case IBV_WC_LOC_ACCESS_ERR:
    return "use memory that stays mapped until quiet; if it does, report this as a bug in "
           "shmemctl, with the command line";
  case IBV_WC_LOC_QP_OP_ERR:
  case IBV_WC_LOC_LEN_ERR:
  case IBV_WC_FATAL_ERR:
    return "check the kernel log: dmesg";
  default:
    return "check the first error of this job";
  }
}

bool peer_may_be_gone(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
         status == IBV_WC_REM_OP_ERR || status == IBV_WC_WR_FLUSH_ERR ||
         status == IBV_WC_RESP_TIMEOUT_ERR;
}

} // namespace shmemctl::verbs
