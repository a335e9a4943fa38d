package standin

import "golang.org/x/sys/cpu"

// hasV3 reports whether the processor has all of x86-64-v3.
func hasV3() bool {
	x := cpu.X86
	return x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasFMA && x.HasPOPCNT && x.HasOSXSAVE
}
