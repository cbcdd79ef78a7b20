package admin

// Calls lists the calls of the plane: "POST /__mock/reset".
func Calls() (list []string) {
	for _, r := range New(Config{}).list {
		list = append(list, r.method+" "+Prefix+"/"+r.path)
	}
	return list
}
