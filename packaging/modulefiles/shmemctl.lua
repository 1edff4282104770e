-- A module of Lmod for an unpacked shmemctl-VERSION-linux-x86_64.tar.zst: copy this file to
-- modulefiles/shmemctl/VERSION.lua, and set `root` to the unpacked folder.
help([[shmemctl: tells whether one-sided GPU communication works, how fast it is, and where the hot spot is.
Start with `shmemctl check`.]])
whatis("Name: shmemctl")
whatis("Version: " .. myModuleVersion())

local root = pathJoin("/opt/shmemctl", myModuleVersion())
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("FPATH", pathJoin(root, "share/zsh/site-functions"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
-- Libraries that shmemctl opens at run time, if the loader does not find them by itself:
-- load("ucx", "libfabric")
