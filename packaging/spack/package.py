# Copyright the shmemctl contributors. Apache-2.0.
# A recipe for Spack: copy it to packages/shmemctl/package.py in a Spack repository of yours, set `git` to
# the address of the source, and run `spack install shmemctl +cuda`.
from spack.package import *


class Shmemctl(CMakePackage, CudaPackage):
    """Tells whether one-sided GPU communication works, how fast it is, and where the hot spot is."""

    homepage = "https://example.com/shmemctl"
    git = "https://example.com/shmemctl.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda", default=False, description="Kernels on NVIDIA GPUs")
    variant("ibverbs", default=True, description="Headers of libibverbs, for the transports ibrc and ibdevx")
    variant("libfabric", default=True, description="Headers of libfabric, for the transport libfabric")
    variant("ucx", default=True, description="Headers of UCX, for the transport ucx")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("valijson", type="build")
    depends_on("boost@1.70: +math", type="build")
    depends_on("hwloc@2.4: libs=static ~pci ~libxml2", type=("build", "link"))
    depends_on("expat libs=static", type=("build", "link"))
    depends_on("zstd libs=static", type=("build", "link"))
    depends_on("rdma-core", when="+ibverbs", type=("build", "run"))
    depends_on("libfabric", when="+libfabric", type=("build", "run"))
    depends_on("ucx", when="+ucx", type=("build", "run"))
    depends_on("cuda@12.3:", when="+cuda")
    conflicts("%gcc@:11", msg="C++20 needs GCC 12 or newer")

    generator("ninja")

    def cmake_args(self):
        args = [self.define_from_variant("SHMEMCTL_CUDA", "cuda"), self.define("SHMEMCTL_TESTS", False)]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        return args
