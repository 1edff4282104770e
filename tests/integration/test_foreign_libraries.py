"""What libraries of others leave in a process, or do to it, does not end `doctor`: they are queried in child
processes. The libraries here are made for the test, and stand for those that a node has."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import CliTest, run

LIBFABRIC = """
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdlib.h>
void refuse_fork(void) { abort(); }
uint32_t fi_version(void) { return FI_VERSION(1, 11); }
const char* fi_strerror(int error) { (void)error; return "No data available"; }
int fi_fabric(struct fi_fabric_attr* attr, struct fid_fabric** fabric, void* context) {
  (void)attr, (void)fabric, (void)context;
  return -FI_ENODATA;
}
struct fi_info* fi_dupinfo(const struct fi_info* info) { /* of nothing, as fi_allocinfo() asks */
  struct fi_info* made = calloc(1, sizeof *made);
  (void)info;
  made->tx_attr = calloc(1, sizeof *made->tx_attr);
  made->rx_attr = calloc(1, sizeof *made->rx_attr);
  made->ep_attr = calloc(1, sizeof *made->ep_attr);
  made->domain_attr = calloc(1, sizeof *made->domain_attr);
  made->fabric_attr = calloc(1, sizeof *made->fabric_attr);
  return made;
}
void fi_freeinfo(struct fi_info* info) { (void)info; }
int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags, const struct fi_info* hints,
               struct fi_info** info) {
  (void)version, (void)node, (void)service, (void)flags, (void)hints, (void)info;
  BODY
  return -FI_ENODATA;
}
"""


@unittest.skipUnless(shutil.which("cc") and pathlib.Path("/usr/include/rdma/fabric.h").exists(),
                     "no C compiler, or no header of libfabric")
class Libfabric(CliTest):
    def doctor(self, body, *words):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = pathlib.Path(folder.name) / "libfabric.c"
        library = source.with_suffix(".so")
        source.write_text(LIBFABRIC.replace("BODY", body), encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-lpthread"], check=True)
        code, out, err = run("doctor", *words, "--timeout", "60", "--json", "-",
                             env={"SHMEMCTL_LIBFABRIC_LIBRARY": str(library)})
        self.assertIn(code, (0, 1), err)
        return {check["id"]: check for check in json.loads(out)["checks"]}

    def test_a_query_that_forbids_fork(self):
        """As EFA's provider of libfabric 1.11 does, which Debian 11 has."""
        checks = self.doctor("pthread_atfork(refuse_fork, 0, 0);", "--only", "rdma,transport,system")
        self.assertIn("cannot be used", checks["libfabric-provider"]["reason"])
        self.assertNotIn("died", checks["libfabric-provider"]["reason"])
        self.assertIn("transport-libfabric", checks)

    def test_a_query_that_ends_its_process(self):
        checks = self.doctor("abort();", "--only", "libfabric-provider")
        self.assertIn("fi_getinfo died of signal 6", checks["libfabric-provider"]["reason"])
        self.assertIn("fi_info -p", checks["libfabric-provider"]["fix"])


if __name__ == "__main__":
    unittest.main()
