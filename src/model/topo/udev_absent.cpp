// hwloc's static library calls libudev for the names of block devices. We read none, and the binary
// must start on a node without libudev; hwloc continues without it if udev_new() returns nullptr.
extern "C" {
struct udev;
struct udev_device;
udev* udev_new() {
  return nullptr;
}
udev* udev_unref(udev*) {
  return nullptr;
}
udev_device* udev_device_new_from_subsystem_sysname(udev*, const char*, const char*) {
  return nullptr;
}
const char* udev_device_get_property_value(udev_device*, const char*) {
  return nullptr;
}
udev_device* udev_device_unref(udev_device*) {
  return nullptr;
}
}
