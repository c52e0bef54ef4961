"""Secrets as people write them down in prose, in twelve languages, and ordinary texts with the same
words.

Each form has one gap for a value. The values are put together here, so that no scanner mistakes
this file for a leak.
"""

from __future__ import annotations

from itertools import cycle

_STYLES = {
    "mixed": (
        *("Mp7" + "!qLz92x", "tr0ub" + "4dor&3", "zX9-pass" + "-4471", "Ab7kd" + "92JQm"),
        *("xK4#ver" + "anda", "9fGh-" + "22kL", "Lima#" + "2207x", "hV8kq" + "2Wz"),
        *("B3rg!" + "see", "Qw8!" + "zhang2026", "p4ss" + "Kiosk", "v7$Nor" + "dlicht"),
        *(
            "aB3_kQ9" + "zLmN2",
            "Wrona_" + "2033k",
            "Tr3no_" + "Blu88",
            "Kx7_lan" + "tern_R2",
            "q4_Zw8" + "_Lm0x",
        ),
    ),
    "words": (
        *("korallenriff" + "-9-tiger", "papillon" + "-bleu-7", "sunflower" + "42"),
        *("Winter" + "2019!", "blauer-fisch" + "-88", "gato-verde" + "-31"),
        *(
            "rosso.mare" + ".5",
            "kirsche" + "77",
            "gato_azul" + "_58",
            "Winter_" + "2019!",
            "nuvola_" + "blu47",
        ),
        *("kx9-Lorry" + "-55", "Vos_88" + "bos", "zilver_" + "Meeuw931"),
    ),
    "digits": (
        "8361" + "52",
        "44" + "71",
        "9021" + "0738",
        "58" + "23",
        "731" + "90",
        "2580" + "1",
    ),
    "phrase": (
        *("correct horse " + "battery staple", "vier ruhige " + "graue elefanten"),
        *(
            "une lampe " + "sous la neige",
            "siete barcos " + "de papel",
            "ozone river " + "apple stone",
        ),
    ),
    "key": (
        "wJalrXUtnFEMI7K7MDENG" + "bPxRfiCYz9Kq2LtA4v",
        "9f86d081884c7d65" + "9a2feaa0c55ad015",
        "q8ZrT2v" + "LmX4pC7nE",
        "mt0Kq92L" + "zXv8RtPe",
        "q8ZrT2v_LmX4p" + "C7nE_w20K",
    ),
    "hex": (
        "3fa9c1d27b604e8f" + "91ac5d0e7f32b846",
        "5e1c07d2-84bb-4f60" + "-a3d9-17c62e90fb4a",
        "b70e4dd1935fa2c8860b" + "7714ce9a03d2f5816b4e",
    ),
    "plain": ("open" + "sesame", "mira" + "belle"),
}

# Written before the rules. The gap names the style of its value.
FORMS = [
    # English
    "the admin pw is {mixed}",
    "password for the router is {mixed}",
    "my password for the router: {mixed}",
    "The password for the guest wifi at the cabin is {words}, it is on the fridge too.",
    "login: admin / {mixed}",
    "login with admin and {mixed}",
    "Log in as `root` / `{mixed}` on the old server.",
    "user mira, password {mixed}",
    "username: mira@example.org, pw {mixed}",
    "- wifi (upstairs): {words} is the password",
    "{words} is the wifi password, don't tell the neighbours",
    "The PIN of my bank card is {digits}.",
    "PIN for the garage door: {digits}",
    "The pin code to the bike shed is {digits}",
    "alarm PIN {digits}, disarm within 30 s",
    "The passphrase of the disk is: {phrase}",
    'Passphrase for the backup drive: "{phrase}"',
    'new password "{mixed}" set for the NAS',
    "We changed the vault password to {mixed} yesterday.",
    "Use {mixed} as the password for staging.",
    "The root password was set to `{mixed}` after the move.",
    "| what | login |\n|---|---|\n| router | admin / {mixed} |",
    'The password to the printer\'s web page is "{plain}" (user admin).',
    "wifi pw → {words}",
    "credentials are mira / {mixed}",
    "The API key for the weather service is {key}",
    "AWS secret for the ci user: {key}",
    "The password (for the guest network) is {words}.",
    "Their password's {mixed}, same as last year.",
    "* pwd of db01 is {mixed}",
    # German
    "Das Passwort fürs WLAN ist {words}",
    "Das WLAN-Passwort lautet {words}.",
    "Passwort für den Router: {mixed}",
    "Kennwort vom alten Laptop ist jetzt „{mixed}“",
    "{words} ist das Passwort für das Gäste-WLAN",
    "Die PIN der Girokarte ist {digits}.",
    "Zugang: admin / {mixed}",
    "Das Passwort von Mira wurde auf {mixed} geändert",
    "WLAN-Schlüssel der Ferienwohnung: {words}",
    "Die Passphrase der Festplatte lautet: {phrase}",
    # French
    "Le mot de passe du wifi est {words}",
    "Mot de passe du wifi : {words}",
    "le mdp de la box c'est {mixed}",
    "Le code PIN de la carte bleue est {digits}.",
    "{words} est le mot de passe du Wi-Fi invité",
    "Le mot de passe pour l'imprimante est « {mixed} ».",
    "identifiant admin, mot de passe {mixed}",
    "La phrase de passe du disque est : « {phrase} »",
    "La clé wifi du gîte : {words}",
    # Spanish
    "La contraseña del wifi es {words}",
    "Contraseña para el router: {mixed}",
    "la clave del wifi de la abuela es {words}",
    "El PIN de la tarjeta es {digits}.",
    "{words} es la contraseña del wifi",
    "usuario: admin, contraseña {mixed}",
    "La nueva contraseña del NAS es «{mixed}».",
    "Acceso: admin / {mixed}",
    "Ayer cambié la contraseña a {mixed}",
    # Portuguese
    "A senha do wifi é {words}",
    "Senha do roteador: {mixed}",
    "A palavra-passe do router é {mixed}",
    "O PIN do cartão é {digits}.",
    "{words} é a senha do wifi da casa",
    "usuário admin, senha {mixed}",
    'A senha para o painel ficou "{mixed}".',
    "mudei a senha para {mixed}",
    # Italian
    "La password del wifi è {words}",
    "Password per il router: {mixed}",
    "Il PIN del bancomat è {digits}.",
    "{words} è la password del wifi",
    "utente admin, password {mixed}",
    "La chiave del wifi della casa al mare: {words}",
    "la pw del NAS è {mixed}",
    "Ho cambiato la password in {mixed}",
    # Dutch
    "Het wachtwoord van de wifi is {words}",
    "Wachtwoord voor de router: {mixed}",
    "{words} is het wachtwoord voor de gasten",
    "De pincode van de bankpas is {digits}.",
    "gebruiker admin, wachtwoord {mixed}",
    "Het nieuwe wachtwoord wordt {mixed}.",
    "inloggen: admin / {mixed}",
    'wifi-wachtwoord boven is "{words}"',
    # Polish
    "Hasło do wifi to {words}",
    "Hasło do routera: {mixed}",
    "Nowe hasło do NAS-a to „{mixed}”.",
    "PIN do karty to {digits}.",
    "{words} to hasło do wifi",
    "login admin, hasło {mixed}",
    "Zmieniłem hasło na {mixed}",
    # Russian
    "Пароль от вайфая — {words}",
    "Пароль для роутера: {mixed}",
    "пароль от почты {mixed}",
    "ПИН-код карты {digits}.",
    "{mixed} — это пароль от админки",
    "логин admin, пароль {mixed}",
    "Новый пароль админа теперь «{mixed}»",
    "Логин: admin / {mixed}",
    # Chinese
    "密码是 {mixed}",
    "服务器的密码是{mixed}，不要外传。",
    "路由器登录口令为{mixed}",
    "账号 admin 密码 {mixed}",
    "密碼是「{mixed}」",
    "银行卡的PIN码是{digits}。",
    "WiFi密码改成了{words}",
    "{mixed} 是路由器的密码",
    "密码（客厅的无线网）：{words}",
    # Japanese
    "パスワードは {mixed} です",
    "Wi-Fiのパスワードは「{words}」です。",
    "パスワードが{mixed}に変わりました",
    "暗証番号は{digits}です。",
    "{mixed} がルーターのパスワードです",
    "ID: admin、パスワード {mixed}",
    "管理画面のパスワードを {mixed} に変更した",
    # Korean
    "비밀번호는 {mixed} 입니다",
    "와이파이 비밀번호는 {words}입니다.",
    "관리자 비번은 {mixed}",
    "카드 비밀번호가 {digits}이에요",
    "아이디 admin 비밀번호 {mixed}",
    "{mixed} 가 공유기 비밀번호",
    "비밀번호를 {mixed}로 바꿨다",
]

# What has the words but no secret; also written before the rules.
LOOK_ALIKES = [
    # English
    "the password is stored in 1Password",
    "The password for the router is on the back of it.",
    "the PIN is four digits",
    "The PIN is 4 digits long and never shown.",
    "the key is to listen",
    "The key is that all 12 tests run before the merge.",
    "the passphrase is written on paper, in the safe of room 204",
    "key figures: 2026",
    "password rotated on 2026-10-01",
    "pw length 16",
    "PIN pad 3000 model",
    "The primary key is user_id, the foreign key order_id2.",
    "API key naming: service-env-number, such as shop-prod-2",
    "the key is `user_id`",
    "password: see vault",
    "The token bucket refills 20 tokens a second.",
    "password hashing: argon2id",
    "The password reset link is valid for 24h.",
    "The password is required.",
    "The default password policy is NIST-800-63B",
    "password for the staging box: ask Ravi",
    "The password manager is KeePassXC 2.7.9",
    "Password protected: report-2026-q3.pdf",
    "login: email / password",
    "login / logout / sign-up",
    "Log in as admin / editor / viewer to see the three menus.",
    "login with Google and GitHub2 is on the list",
    "user stories 14 / 22 done; passwords 3 / 5",
    "the admin password is kept in `secrets/admin.yaml`",
    "The key is in src/auth/keys2.py",
    "The API key is read from `WEATHER_API_KEY_2`.",
    "The secret is in the env variable DB_PASS_V2.",
    "pin 13 is the LED, pin 7 is ground",
    "Pin the version to 1.24.3 and the password library to 2.0",
    "The password prompt appears at 08:30 each day.",
    "Password length is 12-16 characters.",
    "PIN codes of 4 to 6 digits are refused.",
    "Passphrase generation: use diceware with 7776 words",
    "the password for ticket SHOP-1432 is still open",
    "password cracking on an RTX4090 takes 3h20m",
    "The password is changed every 90 days, last on 12.10.2026.",
    "Face ID replaced the PIN on my iPhone15.",
    # German
    "das Passwort ist geheim",
    "Passwort: siehe Tresor",
    "Das Passwort ist mindestens 12 Zeichen lang.",
    "Das Passwort für den Router steht auf der Rückseite.",
    "Die PIN ist vierstellig und kommt per Post.",
    "Der Schlüssel ist im Schrank 12b.",
    "Passwort am 12.10.2026 geändert",
    "Das Kennwort wurde zurückgesetzt, Ticket IT-20417.",
    "Der Schlüssel zum Erfolg: 80/20",
    # French
    "mot de passe oublié",
    "Le mot de passe est affiché au dos de la box.",
    "Mot de passe du wifi : voir le carnet",
    "Le mot de passe doit avoir 12 caractères.",
    "Le code PIN est à quatre chiffres.",
    "la clé USB est de 64Go",
    "La clé du succès : 3 réunions par an",
    # Spanish
    "La contraseña es secreta.",
    "La contraseña está en 1Password.",
    "La clave es escuchar.",
    "contraseña olvidada el 2026-10-01",
    "El PIN tiene 4 cifras.",
    "la clave primaria es id_cliente2",
    "Contraseña del router: pedir a Mira",
    # Portuguese
    "A senha é obrigatória.",
    "A senha está na página 3 do caderno.",
    "senha expira em 90 dias",
    "O PIN tem 4 dígitos",
    "a chave é pública",
    "Senha do roteador: ver etiqueta",
    # Italian
    "La password è obbligatoria.",
    "La password è scaduta il 12/10/2026",
    "La chiave è sotto il vaso n. 3.",
    "Il PIN è di 5 cifre.",
    "Password per il router: chiedere a Mira",
    "password dimenticata? 3 tentativi",
    # Dutch
    "Het wachtwoord is verlopen.",
    "Het wachtwoord staat op bladzijde 12.",
    "wachtwoord vergeten",
    "De pincode is vier cijfers.",
    "De sleutel is van huis 14a",
    "Wachtwoord voor de router: zie sticker",
    # Polish
    "Hasło jest tajne.",
    "Hasło do routera: zapytaj Mirę",
    "hasło wygasa po 90 dniach",
    "PIN ma 4 cyfry",
    "Hasło to podstawa bezpieczeństwa",
    "kluczem jest user_id2",
    # Russian
    "Пароль хранится в сейфе.",
    "пароль меняли 12.10.2026",
    "Пароль от роутера на наклейке",
    "ПИН-код состоит из 4 цифр",
    "ключ к успеху — 8 часов сна",
    "Пароль для роутера: спросить Миру",
    # Chinese
    "密码学",
    "密码是什么",
    "密码是通过 argon2id 哈希存储的",
    "密码至少12位",
    "密码在1Password里",
    "忘记密码请联系 it@example.org",
    "关键是 user_id2 字段",
    "密码 2026 年更换",
    "路由器密码贴在背面",
    "口令为空时返回401",
    # Japanese
    "パスワードは忘れました",
    "パスワードは8文字以上です",
    "パスワードは 1Password にあります",
    "パスワードは2026年10月に変更",
    "暗証番号は4桁です",
    "暗証番号は教えません",
    "主キーは user_id2 です",
    "パスワードが無効な場合は 401 を返す",
    # Korean
    "비밀번호는 비밀입니다",
    "비밀번호는 8자 이상",
    "비밀번호를 잊었어요",
    "비밀번호는 2026년에 바꿨다",
    "핀번호는 4자리",
    "암호는 1Password에 있다",
    "비밀번호가 틀리면 401 오류",
]

# What the rules of version 3 missed in 60 forms that a reviewer wrote, then one that was held out
# until then, then 72 forms of which those rules found 35. The rules of version 4 were fitted to all
# of these.
FURTHER_FORMS = [
    # English
    "We changed the staging db password last night to {words}.",
    # German
    "Der API-Schlüssel für den Wetterdienst ist übrigens {key}",
    # French
    "La clé d'API de la météo vaut {key}",
    "La phrase secrète du disque est désormais {words}",
    # Portuguese
    "A chave da API do tempo é {key}",
    # Italian
    "La parola d'ordine del server è diventata {words}",
    "Ho cambiato la password del NAS in {mixed}",
    # Dutch
    "Wachtwoord voor de testserver wordt vanaf morgen {mixed}",
    "De API-sleutel van de weerdienst is {key}",
    "De wachtwoordzin van de schijf luidt {words}",
    # Polish
    "Nowe hasło do bazy testowej brzmi {words}",
    "Klucz API do pogody to {key}",
    "Zmieniłem hasło do routera na {mixed}",
    # Russian
    "ПИН-код от карты мамы {digits}.",
    "Поменял пароль роутера на {mixed}",
    # Chinese
    "把路由器密码换成 {mixed} 了",
    # Japanese
    "天気APIのキーは {key} です",
    # Korean
    "테스트 DB 암호를 {words} 로 바꿨다.",
    "날씨 API 키는 {key} 입니다",
    "공유기 패스워드: {mixed}",
    # Held out until then
    "> wifi for guests: network Finch, password {words}",
    # English
    "Grandma's tablet: the unlock PIN is {digits}, she forgets it every week.",
    "For the record, the Grafana password got reset to {mixed} on Tuesday.",
    "API key for the map tiles (paid plan): {hex}",
    "If the printer asks, its password is still {words}",
    "The bike lock app wants a passcode - {digits}.",
    "postgres on staging: user shop, and the password there is now {mixed}",
    # German
    "Hab das WLAN-Passwort heute auf {mixed} umgestellt.",
    "Der API-Key vom Kartendienst: {hex}",
    "Geheimzahl der EC-Karte: {digits}",
    "Passwort fürs Kita-Portal ist {words} (Benutzer: ravi).",
    "PIN vom Handy der Oma ist übrigens {digits}.",
    "Für den Testserver gilt ab sofort das Passwort {mixed}.",
    # French
    "Le mot de passe de la tablette de Noé est toujours {words}.",
    "Nouveau mdp de la base de test : {mixed}",
    "La clé API du service de cartes est {hex}.",
    "On a remplacé le mot de passe du NAS par {mixed} hier soir.",
    "Code PIN de l'alarme : {digits}",
    "Pour l'imprimante du bureau, le mot de passe c'est {mixed}",
    # Spanish
    "He puesto {words} como contraseña del wifi.",
    "La clave de la API de mapas es {key}",
    "La contraseña del portal del cole sigue siendo {mixed}",
    "PIN del móvil de papá: {digits}",
    "La contraseña nueva de la base de pruebas será {mixed} desde mañana.",
    "Para entrar al NAS: usuario ravi, contraseña {mixed}",
    # Portuguese
    "A senha do wi-fi da avó continua {words}",
    "Troquei a senha do NAS por {mixed} ontem.",
    "A chave de API dos mapas é {hex}",
    "O PIN do alarme é {digits}",
    "A palavra-passe do portal da escola passou a ser {mixed}",
    "Para o banco de testes a senha é {mixed}, não mude.",
    # Italian
    "La password del registro elettronico è ancora {words}",
    "La chiave dell'API delle mappe è {key}",
    "PIN del telefono di nonna: {digits}",
    "Da oggi la password del database di prova è {mixed}.",
    "Password della stampante impostata su {mixed}",
    "ho messo {mixed} come password del wifi",
    # Dutch
    "Het wachtwoord van het schoolportaal is nog steeds {words}.",
    "De API-key voor de kaarten is {hex}",
    "Pincode van oma's telefoon: {digits}",
    "Ik heb het wachtwoord van de NAS veranderd in {mixed}.",
    "Voor de printer is het wachtwoord {mixed}",
    "De sleutel van de kaarten-API is {key}",
    # Polish
    "Hasło do dziennika szkolnego to nadal {words}.",
    "Klucz do API map: {hex}",
    "PIN do telefonu babci: {digits}",
    "Ustawiłam hasło do NAS-a na {mixed}",
    "hasłem do bazy testowej jest {mixed}",
    "Wifi w domku: sieć Bobr, hasło {words}",
    # Russian
    "Пароль от школьного портала всё ещё {words}.",
    "Ключ от API карт — {hex}",
    "Пин-код от телефона бабушки {digits}",
    "Сменила пароль на NAS, теперь он {mixed}.",
    "На тестовой базе пароль {mixed}",
    "Пароль для принтера такой: {mixed}",
    # Chinese
    "学校网站的密码还是 {words}。",
    "地图接口的密钥是 {hex}",
    "奶奶手机的PIN码：{digits}",
    "NAS密码今天改为{mixed}了。",
    "测试库用户 shop，密码 {mixed}",
    "打印机的密码设成 {mixed}，记一下",
    # Japanese
    "学校ポータルのパスワードはまだ {words} のままです。",
    "地図APIのキー：{hex}",
    "祖母のスマホの暗証番号は {digits} だよ",
    "NASのパスワードを今日 {mixed} にした。",
    "テストDBはユーザー shop、パスワードは {mixed}。",
    "プリンターのパスワード → {mixed}",
    # Korean
    "학교 포털 비밀번호는 아직 {words} 이다.",
    "지도 API 키: {hex}",
    "할머니 휴대폰 비밀번호는 {digits}.",
    "오늘 NAS 비밀번호를 {mixed}(으)로 바꿈",
    "테스트 DB는 사용자 shop, 비밀번호 {mixed}",
    "프린터 패스워드는 {mixed} 입니다.",
]

# The first of these was touched in that review; none of the others was.
FURTHER_LOOK_ALIKES = [
    "La palabra clave es yield2.",
    # English
    "Password policy: at least 14 characters, one of them from !#$%, rotated every 180d.",
    "The key binding for the palette is Ctrl-Shift-P2.",
    "My keyword for the search is retry_backoff2.",
    "The token budget is 4096, the context 128k.",
    "PIN 13 is wired to the buzzer, PIN A4 to SDA.",
    "The password change landed in 4f2c9d1e and is live since 2.14.3.",
    "The API key is read from API_KEY_FILE.",
    "The secret key is loaded from config_prod2.secret_key_v1.",
    "The password check is validate_password_v2, called at login.",
    "The password is validated by check_pw_2fa.",
    "The key is user_session_2024_id.",
    "The cache key is sess_8f3e2a71c09b4d55.",
    "The default password for the container comes from POSTGRES_PASSWORD_V2.",
    "The PIN of the RJ45 connector is 1 for orange-white.",
    "Set the token to the value in GITHUB_TOKEN_2.",
    # German
    "Der Schlüssel liegt bei Familie Okonkwo, Nr. 12b.",
    "Das Schlüsselwort ist yield_from2.",
    "Der Primärschlüssel ist kunde_id2.",
    "Die Tastenkombination mit der PIN-Taste ist Alt-F4.",
    "Das Passwort steht in 1Password unter NAS_2.",
    "Der PIN am Stecker J12 ist 3V3_AUX.",
    "Der API-Schlüssel kommt aus der Variable WETTER_API_KEY2.",
    # French
    "La clé primaire est commande_id2.",
    "Le mot clé est async_for3.",
    "Le mot de passe est lu dans MDP_BASE_2.",
    "La clé de 13mm est dans le tiroir B12.",
    "Le code PIN expire le 31/12/2026 à 18h30.",
    # Spanish
    "La palabra clave es match_case2.",
    "La contraseña se lee de DB_CLAVE_2.",
    "La llave del coche es la del llavero n.º 42.",
    "La clave del diccionario es pais_iso2.",
    "El pin 7 del conector es GND_2.",
    # Portuguese
    "A chave do carro está na gaveta 3b.",
    "A palavra-chave é defer_2.",
    "A chave do cache é sessao_v2.",
    "A senha vem da variável SENHA_BD_2.",
    "A senha foi trocada em 12/10/2026 às 14h05.",
    # Italian
    "La parola chiave è yield_2.",
    "La chiave di casa è sotto il vaso 3b.",
    "La password viene letta da DB_PASSWORD_2.",
    "Il pin 5 del connettore è VCC_3V3.",
    "La chiave del dizionario è codice_iso2.",
    # Dutch
    "Het sleutelwoord is async_def2.",
    "De sleutel ligt bij nummer 14b.",
    "Het wachtwoord komt uit DB_WACHTWOORD_2.",
    "De primaire sleutel is klant_id2.",
    "Wachtwoord gewijzigd op 12-10-2026 om 14:05.",
    # Polish
    "Klucz do mieszkania jest u sąsiadki spod 14b.",
    "Słowo kluczowe to yield_from2.",
    "Klucz obcy to zamowienie_id2.",
    "Hasło jest czytane z DB_HASLO_2.",
    "PIN 4 na złączu to masa, PIN 5 to 3V3.",
    # Russian
    "Ключ от машины лежит в ящике 3b.",
    "Ключевое слово — yield_2.",
    "Пароль читается из DB_PAROL_2.",
    "Внешний ключ — zakaz_id2.",
    "Пароль сменили в версии 2.14.3.",
    # Chinese
    "关键字是 yield_from2。",
    "按下 Esc 键退出，F12 键是调试。",
    "外键是 dingdan_id2。",
    "密码从 DB_PASSWORD_2 读取。",
    "密码功能在 v2.14.3 上线。",
    # Japanese
    "キーバインドは Ctrl-Shift-P です。",
    "終了のキーは Shift-F10 です。",
    "外部キーは chumon_id2 です。",
    "パスワードは DB_PASSWORD_2 から読み込む。",
    "パスワードは v2.14.3 で変更できるようになった。",
    # Korean
    "제 키는 172cm입니다.",
    "단축 키는 Ctrl-Shift-P 입니다.",
    "외래 키는 jumun_id2 입니다.",
    "비밀번호는 DB_PASSWORD_2 에서 읽는다.",
    "키워드는 yield_2 이다.",
]


# Written after the rules, and without a look at them: these were held out.
LATER_FORMS = [
    # English
    "FYI the new office wifi password is {words}",
    "The NAS admin password has been changed to {mixed}.",
    "password to get into the shared drive - {mixed}",
    "Jenkins creds: deploy / {mixed}",
    "Mom's iPad passcode is {digits}",
    'Old laptop: the password was "{mixed}" but try the hint first.',
    "The recovery passphrase for the vault is: {phrase}",
    "SSH key passphrase is {mixed}",
    "My PIN for the gym locker is {digits}, easy to remember.",
    "Stripe secret key for the test shop is {key}",
    "1. open the router page 2. the password there is {mixed} 3. reboot",
    "Remember: {mixed} is the root password on pluto",
    # German
    "Router-Passwort ist {mixed}, steht auch auf dem Kleber.",
    "Mein PIN für die Kreditkarte ist {digits}",
    "das neue WLAN Passwort: {words}",
    "Anmeldung mit mira / {mixed}",
    "Das Admin-Kennwort heißt {mixed}.",
    # French
    "Le nouveau mot de passe de l'admin est {mixed}.",
    "mdp wifi : {words}",
    "Le code PIN du téléphone de maman, c'est {digits}",
    # Spanish
    "La contraseña de la impresora es {mixed} por ahora",
    "pin de la alarma: {digits}",
    "contraseña nueva del correo: {mixed}",
    # Portuguese
    "A senha do roteador é {mixed}, anotada em maio.",
    "PIN do telemóvel: {digits}",
    # Italian
    "La password del router è {mixed}",
    "il pin della sim è {digits}",
    # Dutch
    "Het wachtwoord voor de NAS is {mixed}",
    "pincode van de kluis: {digits}",
    # Polish
    "Hasło administratora to {mixed}",
    "hasło do wifi u babci: {words}",
    # Russian
    "Пароль от роутера: {mixed}",
    "пароль админа — {mixed}",
    # Chinese
    "数据库密码是 {mixed}，用户是 root",
    "新的登录密码为：{mixed}",
    # Japanese
    "新しいパスワードは {mixed} です。",
    "Wi-Fi パスワード {words}",
    # Korean
    "새 비밀번호는 {mixed}입니다",
    "와이파이 비번 {words}",
    #  Written after the rules of version 4, which found 32 of these 36 with the values of that day,
    # and 31 with the values that they get here; nothing was changed for them.  English
    "Dad's phone: passcode {digits}, same as the tablet.",
    "The Wi-Fi password at the lake house has been {words} since spring.",
    "Ravi says the password to the build server is {mixed}; please rotate it.",
    # German
    "Das Kennwort für die Fritzbox habe ich auf {mixed} gesetzt.",
    "Passwort vom Streamingdienst: {words}, Konto läuft auf Mira",
    "Die PIN für das Zahlenschloss lautet {digits}",
    # French
    "Le mot de passe Netflix est {words}",
    "La clé de l'API météo : {hex}",
    "Le code PIN de ma SIM est le {digits}.",
    # Spanish
    "La contraseña de Netflix ahora es {words}.",
    "Clave del wifi de la oficina: {mixed}",
    "El pin del candado es {digits}, no lo olvides",
    # Portuguese
    "Nova senha do e-mail: {mixed}",
    "A senha da Netflix é {words}, a mesma do tablet.",
    "O código PIN da porta é {digits}.",
    # Italian
    "La password di Netflix è {words}.",
    "La nuova chiave API del servizio mappe: {hex}",
    "Il pin del lucchetto è {digits}",
    # Dutch
    "Het nieuwe wachtwoord van Netflix: {words}",
    "De pin van het kluisje is {digits}",
    "wachtwoord van de database op staging is {mixed}, niet delen",
    # Polish
    "Hasło do Netfliksa: {words}",
    "Kod PIN do szafki to {digits}",
    "Nowy klucz API do map to {hex}.",
    # Russian
    "Пароль от нетфликса: {words}",
    "Новый ключ API для карт: {hex}",
    "пароль к базе на стейджинге — {mixed}, никому не давать",
    # Chinese
    "Netflix 的密码是 {words}",
    "门锁的密码是{digits}。",
    "预发布数据库密码：{mixed}（别外传）",
    # Japanese
    "ネットフリックスのパスワードは{words}です",
    "ロッカーの暗証番号：{digits}",
    "ステージングDBのパスワードは {mixed} に変更済み",
    # Korean
    "넷플릭스 비밀번호는 {words} 입니다",
    "사물함 비밀번호: {digits}",
    "스테이징 DB 비밀번호가 {mixed} 로 바뀌었어요",
]

LATER_LOOK_ALIKES = [
    "The wifi password is on a sticker under the router.",
    "The password was wrong three times, so account A-4471 is locked.",
    "We store the password as a bcrypt hash with cost 12.",
    "A password of 8 characters falls in 39 minutes on 8x A100.",
    "The passcode is the same as last year's.",
    "Forgot the PIN? Call 0800 4471 223.",
    "The PIN is sent by post within 5 days.",
    "key takeaways from Q3-2026: revenue up 14%",
    "The key is under the mat at Elm Street 12b.",
    "The key is pressed twice to open menu F12.",
    "SSH keys are ed25519, the old rsa2048 ones are gone.",
    "The token is refreshed after 3600 seconds.",
    "The secret is butter, 250g of it.",
    "The secret ingredient is E621.",
    "Secret Santa is on 2026-12-18 at 18:30.",
    "password fields use autocomplete=new-password",
    "The login page is at /login2 and the API at /v2/login.",
    "login: see #ops-onboarding",
    "Login times: mon / tue2 / wed",
    "Credentials rotate weekly; job cred-rotate-07 does it.",
    "The password hint is my first dog",
    "Passwords are in KeePass, entry 42, folder IT/Servers-2.",
    "The pass is valid until 31.12.2026, gate B14.",
    "Mountain pass at 2473 m is closed",
    "pw stands for password; PW1 and PW2 are form fields",
    "Das Passwort ist im Umschlag Nr. 17.",
    "Passwort bitte bei Ravi erfragen, Durchwahl 4471.",
    "Der PIN-Brief kommt am 12.11.2026.",
    "Le mot de passe est trop court (min. 12).",
    "La clé est chez le voisin du 3e.",
    "La contraseña caduca el 31/12/2026.",
    "A senha do Wi-Fi está na geladeira.",
    "La password è scritta a pagina 42.",
    "Het wachtwoord is 1 keer per jaar te wijzigen.",
    "Hasło jest na kartce w szufladzie nr 2.",
    "Пароль написан на стикере, комната 204.",
    "密码在第12页",
    "密码错误超过5次会锁定30分钟",
    "パスワードは3回まで入力できます",
    "비밀번호는 90일마다 바꿔야 한다",
]


def filled(forms: list[str]) -> list[tuple[str, str]]:
    """Each form with a value in its gap, and the value."""
    made = []
    values = {style: cycle(several) for style, several in _STYLES.items()}
    for form in forms:
        before, _, rest = form.partition("{")
        style, _, after = rest.partition("}")
        value = next(values[style])
        made.append((before + value + after, value))
    return made
