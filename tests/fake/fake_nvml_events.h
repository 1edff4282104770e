// What the fake NVML's event functions need of the rest of it.
#pragma once

/// NVML's code if it is not up or this function is told to fail, else 0.
/// @param gpu the GPU's handle, or NULL for a function of none
int fake_nvml_refuses(const char* function, const void* gpu);
