package app

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego/objc"
)

// The values of SMAppServiceStatus: https://developer.apple.com/documentation/servicemanagement/smappservice/status-swift.enum
const (
	serviceNotRegistered    = 0
	serviceEnabled          = 1
	serviceRequiresApproval = 2
	serviceNotFound         = 3
)

// loginService is the app itself as a login item, from macOS 13 on: https://developer.apple.com/documentation/servicemanagement/smappservice/mainapp
func loginService() (objc.ID, error) {
	if _, err := framework("ServiceManagement"); err != nil {
		return 0, fmt.Errorf("login item: %w", err)
	}
	service := smAppServiceMain(class("SMAppService"))
	if service == 0 {
		return 0, ErrNotHere
	}
	return service, nil
}

// loginItem asks the system; nothing of it is remembered.
func loginItem() (LoginStatus, error) {
	service, err := loginService()
	if err != nil {
		return LoginUnavailable, err
	}
	switch smAppServiceStatus(service) {
	case serviceEnabled:
		return LoginOn, nil
	case serviceRequiresApproval:
		return LoginNeedsApproval, nil
	case serviceNotFound: // not a bundle, or one that the system has not seen in a folder of apps
		return LoginUnavailable, nil
	}
	return LoginOff, nil
}

func setLoginItem(on bool) error {
	service, err := loginService()
	if err != nil {
		return err
	}
	var left objc.ID
	ok := false
	if on {
		ok = smAppServiceRegister(service, unsafe.Pointer(&left))
	} else {
		ok = smAppServiceUnregister(service, unsafe.Pointer(&left))
	}
	if !ok {
		return fmt.Errorf("login item: %w", failure(left))
	}
	return nil
}

func smAppServiceMain(class objc.ID) objc.ID {
	return objc.Send[objc.ID](class, objc.RegisterName("mainAppService"))
}

// https://developer.apple.com/documentation/servicemanagement/smappservice/status-swift.property
func smAppServiceStatus(service objc.ID) int {
	return objc.Send[int](service, objc.RegisterName("status"))
}

// https://developer.apple.com/documentation/servicemanagement/smappservice/register()
func smAppServiceRegister(service objc.ID, left unsafe.Pointer) bool {
	return objc.Send[bool](service, objc.RegisterName("registerAndReturnError:"), left)
}

// https://developer.apple.com/documentation/servicemanagement/smappservice/unregister()
func smAppServiceUnregister(service objc.ID, left unsafe.Pointer) bool {
	return objc.Send[bool](service, objc.RegisterName("unregisterAndReturnError:"), left)
}
