// In place of DeepEP's header of this name, which deepep_v1/ibgda_device.cuh includes.
#pragma once
